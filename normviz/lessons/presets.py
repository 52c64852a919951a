"""Named duels: functions that return the lanes, shared by the page, the terminal and the tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..catalog import SCHEMES
from ..catalog.registry import Registry
from ..config import RunConfig

Lanes = tuple[RunConfig, ...]

QUICK = SCHEMES.keys()[:6]
"""Placements that the page offers at one click for each lane."""

QUICK_INITS = ("xavier", "torch")
"""Initialisations with which the hero's quick placements ship as finished runs."""


@dataclass(frozen=True)
class Preset:
    """A duel with its question, a description, and its lanes."""

    key: str
    label: str
    question: str
    sentence: str
    lanes: Callable[[], Lanes]


def hero() -> Lanes:
    """Pre-LN against Post-LN, 12 blocks, Xavier, learning rate 0.003, 200 steps."""
    return RunConfig(), RunConfig(scheme="post")


def quick() -> Lanes:
    """The hero with each quick placement and each of the two initialisations."""
    first = hero()[0]
    return tuple(first.replace(scheme=key, init=init) for init in QUICK_INITS for key in QUICK)


def prose() -> Lanes:
    """The hero on real text, 16 blocks."""
    return tuple(lane.replace(task="prose", depth=16) for lane in hero())


def init() -> Lanes:
    """Post-LN with Xavier and with PyTorch's default initialisation."""
    post = RunConfig(scheme="post")
    return post, post.replace(init="torch")


def warmup() -> Lanes:
    """Post-LN with 10 blocks, without warm-up and with 200 steps of it."""
    post = RunConfig(scheme="post", depth=10, steps=400)
    return post, post.replace(warmup=200)


def high_lr() -> Lanes:
    """Pre-LN, Peri-LN and Pre-LN with QK-norm at learning rate 0.1."""
    pre = RunConfig(lr=0.1, steps=150)
    return pre, pre.replace(scheme="peri"), pre.replace(qk_norm="on")


def depth() -> Lanes:
    """Pre-LN, Post-LN and DeepNorm with 24 blocks at learning rate 0.001."""
    pre = RunConfig(depth=24, lr=1e-3, steps=150)
    return pre, pre.replace(scheme="post"), pre.replace(scheme="deepnorm")


def today() -> Lanes:
    """Pre-LN, Peri-LN and res-post-norm in a block of today: RMSNorm, SwiGLU, RoPE, QK-norm."""
    pre = RunConfig(norm="rmsnorm", activation="swiglu", positions="rope", qk_norm="head")
    return pre, pre.replace(scheme="peri"), pre.replace(scheme="resp")


def muon() -> Lanes:
    """The hero with Muon instead of AdamW."""
    return tuple(lane.replace(optimizer="muon") for lane in hero())


def no_norm() -> Lanes:
    """No norm at all, with Xavier and with PyTorch's default initialisation."""
    none = RunConfig(scheme="none")
    return none, none.replace(init="torch")


def rnn() -> Lanes:
    """Digits pixel by pixel: an RNN without a norm and with one on its pre-activation, and an LSTM."""
    none = RunConfig(family="rnn", scheme="cell_none", batch=16, steps=200)
    return (
        none,
        none.replace(scheme="pre_activation"),
        none.replace(family="lstm", scheme="cell_none"),
    )


def vit() -> Lanes:
    """Pre-LN and Post-LN in a vision transformer of 12 blocks."""
    pre = RunConfig(family="vit")
    return pre, pre.replace(scheme="post")


def graph() -> Lanes:
    """A graph network of 12 blocks on the karate club: no norm, LayerNorm, BatchNorm."""
    layer = RunConfig(family="gnn", lr=1e-3, steps=100)
    return tuple(layer.replace(norm=norm) for norm in ("none", "layernorm", "batchnorm"))


def batch_one() -> Lanes:
    """An MLP: LayerNorm with batches of one image, BatchNorm with batches of 2 and of 32."""
    layer = RunConfig(family="mlp", depth=4, batch=1, lr=1e-3, steps=300)
    batch = layer.replace(norm="batchnorm", batch=2)
    return layer, batch, batch.replace(batch=32)


PRESETS: Registry[Preset] = Registry(
    "preset",
    (
        Preset(
            "hero", "Pre-LN and Post-LN", "What does moving the norm do?",
            "The duel that this page opens with: 12 blocks, one norm, two places.", hero,
        ),
        Preset(
            "prose", "On real text", "Does the same happen on English prose?",
            "The first duel with 16 blocks, predicting prose character by character.", prose,
        ),
        Preset(
            "init", "Another initialisation", "Is it the placement alone?",
            "Post-LN twice: Xavier weights, and those of PyTorch's own layer.", init,
        ),
        Preset(
            "warmup", "Warm-up", "Does warm-up rescue Post-LN?",
            "Post-LN twice, 10 blocks: at the full rate from the start, and raised to it.", warmup,
        ),
        Preset(
            "high_lr", "Learning rate 0.1", "Which lane stays stable at a high rate?",
            "Pre-LN, Peri-LN and Pre-LN with QK-norm, all at a rate of 0.1.", high_lr,
        ),
        Preset(
            "depth", "24 blocks", "What happens when it gets deeper?",
            "Pre-LN, Post-LN and DeepNorm, twice as deep, at a third of the rate.", depth,
        ),
        Preset(
            "today", "A block of today", "Does the place matter in a block of today?",
            "Pre-LN, Peri-LN and res-post-norm with RMSNorm, SwiGLU, RoPE and QK-norm.", today,
        ),
        Preset(
            "muon", "Muon", "Does the place matter with Muon?",
            "The first duel with Muon instead of AdamW, at the same rate.", muon,
        ),
        Preset(
            "no_norm", "No norm", "Does it train without any norm?",
            "No norm twice: Xavier weights, and those of PyTorch's own layer.", no_norm,
        ),
        Preset(
            "rnn", "LayerNorm in an RNN", "What does a norm do in a recurrent net?",
            "Digits read pixel by pixel, 64 time steps: an RNN without and with LayerNorm, and an LSTM.", rnn,
        ),
        Preset(
            "vit", "Pre and Post in a ViT", "Is it the same in a vision transformer?",
            "The first duel on real images: 12 blocks that read 16 patches.", vit,
        ),
        Preset(
            "graph", "BatchNorm and LayerNorm on a graph", "Which norm suits a graph?",
            "A graph network of 12 blocks on the karate club: no norm, LayerNorm, BatchNorm.", graph,
        ),
        Preset(
            "batch_one", "Batch of one", "Can a norm train on one image at a time?",
            "An MLP with LayerNorm and one image a step, and with BatchNorm and 2 or 32 of them.", batch_one,
        ),
    ),
)  # fmt: skip
