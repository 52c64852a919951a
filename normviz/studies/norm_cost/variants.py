"""The timed variants: LayerNorm, its replacements, and LayerNorm again as a control."""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.registry import Registry


@dataclass(frozen=True)
class Variant:
    """One module in the norm's place; `sentence` says how it is computed."""

    key: str
    label: str
    sentence: str
    source: str


REFERENCE, CONTROL, LIBRARY = "layernorm", "again", "rmsnorm"

VARIANTS: Registry[Variant] = Registry(
    "variant",
    (
        Variant(
            REFERENCE,
            "LayerNorm",
            "torch.nn.LayerNorm: one kernel forward, one backward.",
            "arXiv:1607.06450",
        ),
        Variant(
            CONTROL,
            "LayerNorm again",
            "The same again, as a control: its difference is the error of the measurement.",
            "arXiv:1607.06450",
        ),
        Variant(
            "layernorm_hand",
            "LayerNorm (hand-written)",
            "Mean, deviation, rsqrt, weight and bias in elementary operations of PyTorch: what savings "
            "of a hand-written RMSNorm are measured against where no kernel is fused.",
            "arXiv:1607.06450",
        ),
        Variant(
            "rmsnorm",
            "RMSNorm (library)",
            "torch.nn.RMSNorm as this release of PyTorch runs it on this device.",
            "arXiv:1910.07467",
        ),
        Variant(
            "rmsnorm_hand",
            "RMSNorm (hand-written)",
            "x * rsqrt(mean(x^2) + eps) * weight in one line of PyTorch, as in much model code.",
            "arXiv:1910.07467",
        ),
        Variant(
            "rmsnorm_fused",
            "RMSNorm (fused backward)",
            "The same, with its gradient by formula in one function instead of one step per operation.",
            "arXiv:1910.07467",
        ),
        Variant(
            "dyt",
            "DyT",
            "weight * tanh(alpha x) + bias: no statistics at all.",
            "arXiv:2503.10622",
        ),
        Variant(
            "none",
            "No norm",
            "Nothing in the norm's place: the most that any norm could save.",
            "",
        ),
    ),
)
KEYS = VARIANTS.keys()


@dataclass(frozen=True)
class Context:
    """A place where a norm is timed, and the timed passes."""

    key: str
    label: str
    sentence: str
    passes: tuple[str, ...]


FORWARD, BOTH = "forward", "both"
PASSES = {FORWARD: "forward", BOTH: "forward and backward"}

CONTEXTS: Registry[Context] = Registry(
    "context",
    (
        Context("alone", "Alone", "The norm by itself.", (FORWARD, BOTH)),
        Context(
            "block",
            "In a block",
            "One Pre-LN block: attention, feed-forward network and two norms.",
            (FORWARD, BOTH),
        ),
        Context(
            "step",
            "In a training step",
            "A whole step: batch, two blocks and five norms, loss, backward, AdamW.",
            (BOTH,),
        ),
    ),
)
CASES = tuple((context.key, passes) for context in CONTEXTS for passes in context.passes)
"""Every (context, passes), in the order of a round."""
