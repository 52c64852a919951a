"""The standard maps: sweeps that ship with their results, so that the Maps page opens with them."""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.registry import Registry


@dataclass(frozen=True)
class Standard:
    """A map: the words of its sweep (as `normviz sweep` takes them) and which settings span it.

    sentence  what one may look for in it, without saying what comes out
    """

    key: str
    label: str
    sentence: str
    words: dict[str, str]
    across: str
    up: str


DEPTHS = "2,4,8,16,32,64"
RATES = "0.0001,0.0003,0.001,0.003,0.01,0.03,0.1"
HIGH = "0.03,0.1,0.3,1"

MAPS: Registry[Standard] = Registry(
    "map",
    (
        Standard(
            "torch",
            "Depth × learning rate",
            "With PyTorch's initialisation: at which depths and learning rates does each placement train?",
            {"scheme": "post,pre,peri", "init": "torch", "depth": DEPTHS, "lr": RATES,
             "steps": "150", "seeds": "3"},
            "depth", "lr",
        ),
        Standard(
            "xavier",
            "The same, Xavier",
            "The same depths and learning rates, with branches that start stronger.",
            {"scheme": "post,deepnorm,pre,peri,none", "init": "xavier", "depth": DEPTHS, "lr": RATES,
             "steps": "150", "seeds": "3"},
            "depth", "lr",
        ),
        Standard(
            "high",
            "Higher rates",
            "The two placements that stand the highest rates: where does each end?",
            {"scheme": "pre,peri", "init": "torch,xavier", "depth": DEPTHS, "lr": HIGH,
             "steps": "150", "seeds": "3"},
            "depth", "lr",
        ),
        Standard(
            "deep",
            "24 and 96 blocks",
            "With Xavier, at the rates that the page Choose compares: which placements train deeper?",
            {"scheme": "post,deepnorm,pre,peri,none", "init": "xavier", "depth": "24,96",
             "lr": "0.001,0.003,0.01,0.03", "steps": "150", "seeds": "3"},
            "depth", "lr",
        ),
        Standard(
            "warmup",
            "Warm-up × learning rate",
            "Ten blocks with Xavier: at which learning rates does a warm-up help, and how long must it be?",
            {"scheme": "post,pre", "init": "xavier", "depth": "10", "warmup": "0,25,50,100,200",
             "lr": "0.0003,0.001,0.003,0.01", "steps": "400", "seeds": "3"},
            "warmup", "lr",
        ),
        Standard(
            "init",
            "Depth × initialisation",
            "One learning rate, four initialisations: up to which depth does each placement train?",
            {"scheme": "post,pre", "init": "xavier,torch,gpt2,gpt2_width", "depth": DEPTHS,
             "lr": "0.003", "steps": "150", "seeds": "3"},
            "depth", "init",
        ),
        Standard(
            "modern",
            "RMSNorm and QK-norm",
            "24 blocks with RMSNorm and QK-norm: at which rates does each placement train?",
            {"scheme": "pre,post,peri,resp,deepnorm", "norm": "rmsnorm", "qk_norm": "head",
             "init": "xavier", "depth": "24", "lr": "0.001,0.003,0.01,0.03,0.1,0.3", "steps": "150",
             "seeds": "3"},
            "scheme", "lr",
        ),
    ),
)  # fmt: skip
