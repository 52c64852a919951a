"""What real models do, counted in the census. These claims have no arms: nothing is trained."""

from __future__ import annotations

from collections import Counter

from ....catalog.models import Model, census
from ..record import Claim, Number, Strip
from ..rule import Fact, Part

MODERN = 2023
"""The first year of what these claims call modern."""
BOTH = ("sandwich", "peri")


def _all() -> tuple[Model, ...]:
    return census().models


def _modern() -> list[Model]:
    return [model for model in _all() if model.kind == "decoder" and (model.year or 0) >= MODERN]


def _of(name: str) -> list[Model]:
    return [model for model in _all() if model.model == name]


def _count(label: str, value: int) -> Number:
    return Number(label, lambda _sample: float(value), ".0f")


def _placed(models: list[Model] | tuple[Model, ...], *placements: str | None) -> int:
    return sum(model.placement in placements for model in models)


def _rest(models: list[Model]) -> int:
    named = ("pre", "resp", "parallel", "parallel_two", *BOTH, None)
    return len(models) - _placed(models, *named)


def lead(models: list[Model] | tuple[Model, ...]) -> int:
    """Stacks of the most frequent other placement, less those with norms on both sides of the branch and
    all undecided ones."""
    others = Counter(model.placement for model in models if model.placement not in (None, *BOTH))
    return others.most_common(1)[0][1] - _placed(models, *BOTH, None)


def _share(part: int, whole: int) -> float:
    return 100 * part / whole


_MODERN = f"decoders since {MODERN}"
_FAMILY = [model for model in _all() if model.model.startswith("falcon")]

CLAIMS = (
    Claim(
        "M1",
        "Modern LLMs are Pre-LN",
        "All modern large language models use Pre-LN.",
        "teaching material",
        {},
        {
            "all": _count(f"{_MODERN}, all", len(_modern())),
            "pre": _count(f"{_MODERN}, Pre-LN", _placed(_modern(), "pre")),
            "both": _count(f"{_MODERN}, norms before and after the branch", _placed(_modern(), *BOTH)),
            "after": _count(f"{_MODERN}, a norm after the branch alone", _placed(_modern(), "resp")),
            "one": _count(
                f"{_MODERN}, parallel branches", _placed(_modern(), "parallel", "parallel_two")
            ),
            "rest": _count(f"{_MODERN}, another placement", _rest(_modern())),
            "open": _count(f"{_MODERN}, undecided", _placed(_modern(), None)),
            "share": Number(
                "share of Pre-LN in decoders since 2023, undecided ones counted as others",
                lambda _sample: _share(_placed(_modern(), "pre"), len(_modern())),
                ".0f", "%",
            ),
            "most": Number(
                "share of Pre-LN in decoders since 2023, undecided ones counted as Pre-LN",
                lambda _sample: _share(_placed(_modern(), "pre", None), len(_modern())),
                ".0f", "%",
            ),
        },
        (
            Part("All are Pre-LN", Fact("most", low=100)),
            Part("More than half are Pre-LN", Fact("share", low=50), control=True),
        ),
        "Of {all} stacks of blocks of decoders whose code has a copyright notice of 2023 or later, "
        "{pre} are Pre-LN, {share} of them. {both} have norms before and after attention and FFN, "
        "{after} have a norm after each branch alone (OLMo Hybrid only in its blocks with "
        "attention), {one} have parallel branches, which read a normed stream too, and {rest} have "
        "another placement. The placement of {open} is undecided. Decoders of audio are counted "
        "too, and blocks without attention, as Mamba's. A stack is the code path of one model type "
        "with its configuration's defaults; settings of a few change the placement, and five "
        "classes that two types share count twice. Models that run on older code, as Llama 2 and 3 "
        "do, are not among them. How many people use a model is not counted, and a variant that "
        "copies another model's code counts again.",
        Strip("stacks of blocks", ("pre", "both", "after", "one", "rest", "open")),
        seeds=1,
        general=True,
        changed="That more than half are Pre-LN became a control, and that one other placement "
        "contradicts what is said of all was said, after a result; until then the verdict was "
        "holds in part.",
        question="models",
        finding=(
            "ft",
            "{pre} of {all} code paths of decoders whose code is dated 2023 or later are Pre-LN, "
            "{share}; {both} have norms on both sides of each branch, and the placement of {open} "
            "is undecided.",
        ),
    ),
    Claim(
        "M2",
        "The original T5 is Post-LN",
        "T5 keeps the placement of the original transformer, Post-LN.",
        "teaching material; against it Raffel et al. 2020, arXiv:1910.10683 (the norm is outside "
        "of the residual path)",
        {},
        {
            "all": _count("T5, all", len(_of("t5"))),
            "post": _count("T5, Post-LN", _placed(_of("t5"), "post")),
            "pre": _count("T5, Pre-LN", _placed(_of("t5"), "pre")),
            "rms": _count("T5, RMSNorm", sum(model.norm == "rmsnorm" for model in _of("t5"))),
        },
        (Part("T5 is Post-LN", Fact("post", low=1)),),
        "The census has {all} stack of blocks for T5, since encoder and decoder are the same "
        "class. Stacks that are Post-LN: {post}, Pre-LN: {pre}, with RMSNorm: {rms}. The same code "
        "runs the first T5 and version 1.1. It is the library's code, not the authors', with a "
        "final norm after each stack.",
        Strip("stacks of blocks", ("all", "post", "pre")),
        seeds=1,
        question="models",
        finding=(
            "f",
            "In the census T5 is Pre-LN, with RMSNorm. The first T5 and version 1.1 run the same "
            "code.",
        ),
    ),
    Claim(
        "M3",
        "Falcon uses RMSNorm",
        "Falcon (7B, 40B and 180B) uses RMSNorm, as Llama does.",
        "teaching material; Almazrouei et al. 2023, arXiv:2311.16867, describe Falcon",
        {},
        {
            "all": _count("Falcon, all", len(_of("falcon"))),
            "rms": _count("Falcon, RMSNorm", sum(m.norm == "rmsnorm" for m in _of("falcon"))),
            "layer": _count("Falcon, LayerNorm", sum(m.norm == "layernorm" for m in _of("falcon"))),
            "family": _count("all models named Falcon", len(_FAMILY)),
            "family_rms": _count(
                "all models named Falcon, RMSNorm", sum(m.norm == "rmsnorm" for m in _FAMILY)
            ),
        },
        (Part("Falcon has RMSNorm", Fact("rms", low=1)),),
        "Falcon 7B, 40B and 180B share their code. Of its stacks of blocks ({all}), {rms} have "
        "RMSNorm and {layer} LayerNorm. Of all {family} stacks with the name Falcon, {family_rms} "
        "have RMSNorm: the later Falcon H1 and Falcon Mamba are other architectures.",
        Strip("stacks of blocks", ("all", "rms", "layer")),
        seeds=1,
        changed="The sentence said Falcon alone, which has later models with RMSNorm.",
        question="models",
        finding=(
            "f",
            "Falcon 7B to 180B use LayerNorm. The later Falcon H1 and Falcon Mamba use RMSNorm.",
        ),
    ),
    Claim(
        "M4",
        "Sandwich-LN is not the standard",
        "Norms before and after each branch (Sandwich-LN, Peri-LN) are not the standard.",
        "teaching material; Kim et al. 2025, arXiv:2502.02732, name models that have them",
        {},
        {
            "all": _count("language models, all", len(_all())),
            "both": _count("language models, norms before and after the branch", _placed(_all(), *BOTH)),
            "pre": _count("language models, Pre-LN", _placed(_all(), "pre")),
            "lead": _count(
                "language models, lead of the most frequent other placement, if all undecided ones had both",
                lead(_all()),
            ),
            "lead_modern": _count(
                f"{_MODERN}, lead of the most frequent other placement, if all undecided ones had both",
                lead(_modern()),
            ),
        },
        (
            Part("Another placement is more frequent", Fact("lead", low=1)),
            Part(f"It is more frequent in decoders since {MODERN} too", Fact("lead_modern", low=1)),
        ),
        "Of {all} stacks of language models, {both} have norms before and after each branch, and "
        "{pre} are Pre-LN. The most frequent other placement leads by {lead} even if every "
        "undecided stack had both norms, and by {lead_modern} in decoders since 2023. These are "
        "counts of code paths.",
        Strip("stacks of blocks", ("both", "pre")),
        seeds=1,
        changed="The second part said \"It is in decoders since 2023 too\"; its check is the "
        "same. The claim also said that some models have them, which no part asks.",
        question="models",
        finding=(
            "tt",
            "{both} of {all} code paths of language models have norms on both sides of each "
            "branch, and {pre} are Pre-LN, which stays the most frequent if all undecided ones had "
            "both.",
        ),
    ),
)  # fmt: skip
