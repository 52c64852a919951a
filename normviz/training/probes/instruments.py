"""One function for each probe, or for several that share work: the tensors of a step to a number a layer.

They are measured on the tape in `training/tape/probes.py`, of recurrent nets in `recurrent.py`, of
a watched model in `own_model/instruments.py`, and by the page that trains in `assets/player/tape.js`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from ...catalog import FAMILIES, PROBES, SCHEMES
from ...catalog.probes import recorded_by
from ...config import RunConfig
from ...model.flat import Flat
from ...model.norms import scales
from ...model.transformer import Transformer
from . import recurrent
from .recorder import Recorder, Reduction, StepBuffers

SITES = ("stream", "skip", "branch_in", "branch_out")


class NormScales:
    """The learned norm scales of all blocks of a model, as they were before the first step; or of n models
    whose parameters are `rows` [n, P]."""

    def __init__(self, model: Transformer, flat: Flat, rows: Tensor | None = None) -> None:
        size, first = flat.values.element_size(), flat.values.data_ptr()
        places: list[int] = []
        counts: list[int] = []
        for block in model.blocks:
            own = [((p.data_ptr() - first) // size, p.numel()) for p in scales(block)]
            places += [at + i for at, n in own for i in range(n)]
            counts.append(sum(n for _, n in own))
        self.values = flat.values if rows is None else rows
        self.places = torch.tensor(places, device=flat.values.device).long()
        on_cpu = flat.values.device.type == "cpu"  # numpy gathers them in a third of the time
        self.shared = (self.values.numpy(), self.places.numpy()) if on_cpu else None
        self.block = np.repeat(np.arange(len(counts)), counts)
        self.counts = np.maximum(counts, 1)
        self.start = self.present()

    def drift(self) -> NDArray[np.float64]:
        """[L] or [n, L] RMS of the change of each block's scales since the start; 0 for a block without."""
        squares = np.square(self.present() - self.start)
        sums = [np.bincount(self.block, of, len(self.counts)) for of in np.atleast_2d(squares)]
        return np.sqrt(np.reshape(sums, (*squares.shape[:-1], -1)) / self.counts)

    def present(self) -> NDArray[np.float64]:
        """The scales now, those of all blocks of a model in one row."""
        if self.shared:
            values, places = self.shared
            return values[..., places].astype(np.float64)
        return self.values[..., self.places].cpu().numpy().astype(np.float64)


@dataclass
class StepTensors:
    """The tensors of one step's forward and backward pass, before clipping and the update."""

    config: RunConfig
    flat: Flat
    recorder: Recorder
    scales: NormScales
    buffers: StepBuffers = field(default_factory=StepBuffers)


def grad_block(seen: StepTensors) -> Tensor:
    """[L] L2 norm of the loss gradient of all parameters of each block; arXiv:2002.04745, figure 3."""
    return torch.linalg.vector_norm(seen.flat.block_grads, dim=1)


def grad_w2(seen: StepTensors) -> Tensor:
    """[L] L2 norm of the loss gradient of each block's second FFN matrix; arXiv:2002.04745, theorem 1."""
    columns = seen.flat.columns["ffn.branch.down.weight"]
    return torch.linalg.vector_norm(seen.flat.block_grads[:, columns], dim=1)


def grad_qk(seen: StepTensors) -> Tensor:
    """[L] L2 norm of the loss gradient of each block's query and key weights; arXiv:2206.03126."""
    start = seen.flat.columns["attention.branch.qkv.weight"].start
    query_and_key = slice(start, start + 2 * seen.config.width**2)
    return torch.linalg.vector_norm(seen.flat.block_grads[:, query_and_key], dim=1)


def grad_hidden(seen: StepTensors) -> Tensor:
    """[L+1] L2 norm of the loss gradient of the stream after embedding and blocks; arXiv:2004.08249."""
    return norms(seen.buffers.gradients(seen.recorder, "stream"))


def branches(seen: StepTensors) -> tuple[Tensor, ...]:
    """RMS of the branch over RMS of the skip path, cosine of both, RMS of what the branch reads, and RMS of
    the sum, each [L], the mean of attention and FFN; arXiv:2004.08249 and arXiv:2505.11881."""
    skip, branch = (seen.buffers.stack(seen.recorder, site) for site in ("skip", "branch_out"))
    # RMS over RMS is norm over norm: both have equally many numbers.
    ratio = norms(branch) / norms(skip)
    sizes = torch.linalg.vector_norm(skip, dim=-1) * torch.linalg.vector_norm(branch, dim=-1)
    cosine = (
        torch.where(sizes == 0, sizes, torch.linalg.vecdot(skip, branch) / sizes).flatten(1).mean(1)
    )
    reads = seen.buffers.stack(seen.recorder, "branch_in")
    read, added = rms(reads), rms(skip.add_(branch))
    return tuple(x.view(-1, 2).mean(1) for x in (ratio, cosine, read, added))


def stream(seen: StepTensors) -> tuple[Tensor, ...]:
    """Largest size of the stream, that over the median size, kurtosis of its channels, RMS, and mean pairwise
    cosine of its positions, all [L+1]; arXiv:2402.17762, arXiv:2405.19279, arXiv:2002.04745, lemma 2, and
    arXiv:2103.03404."""
    x = seen.buffers.stack(seen.recorder, "stream")  # [L+1, B, T, D]
    sizes = x.abs().flatten(1)
    largest, squares = sizes.amax(1), x.flatten(1, 2).square().mean(1)  # the latter [L+1, D]
    kurtosis = squares.square().mean(1) / squares.mean(1).square()
    return largest, largest / sizes.median(1).values, kurtosis, rms(x), token_cosine(x)


def two_streams(seen: StepTensors) -> tuple[Tensor, ...]:
    """RMS, length of the gradient and mean pairwise cosine of each of two streams side by side, all [L+1];
    arXiv:2304.14802 and arXiv:2602.08064."""
    x = seen.buffers.stack(seen.recorder, "stream")
    g = seen.buffers.gradients(seen.recorder, "stream")
    halves = [(x.chunk(2, -1)[i].contiguous(), g.chunk(2, -1)[i]) for i in (0, 1)]
    return tuple(f for x, g in halves for f in (rms(x), norms(g), token_cosine(x)))


def norms(x: Tensor) -> Tensor:
    """[n] L2 norms of the tensors of a stack [n, ...]."""
    return torch.linalg.vector_norm(x.flatten(1), dim=1)


def rms(x: Tensor) -> Tensor:
    """[n] root mean squares of the tensors of a stack."""
    return norms(x) / x[0].numel() ** 0.5


def token_cosine(x: Tensor) -> Tensor:
    """[n] mean pairwise cosines of the positions of the tensors of a stack [n, B, T, D], which it overwrites.

    They come from the spread of the unit vectors u: 1 - cos = sum |u - mean u|^2 / (T - 1), which stays
    exact to 1e-14 where the cosine itself would round to 1.
    """
    x.div_(torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min_(1e-30))
    x.sub_(x.mean(2, keepdim=True))
    spread = torch.linalg.vector_norm(x.flatten(2), dim=2).double().square() / (x.shape[2] - 1)
    return 1.0 - spread.mean(1)


def attention_reductions() -> dict[str, Reduction]:
    """What `attention` reads, computed from the logits z and weights p of a block, both [B*H, T, T].

    Sums and extremes over B*H first: reducing along the first axis is several times faster than
    along rows of T numbers, and what is left is tiny. Hidden positions have p = 0 exactly.
    """
    last: list[Tensor] = []

    def of_logits(z: Tensor) -> tuple[Tensor, ...]:
        last.append(z)
        return (z.amin(0), z.amax((0, 2)))  # [T, T], [T]

    def of_weights(p: Tensor) -> tuple[Tensor, ...]:
        z = last.pop()
        below = z.amax(-1, keepdim=True).sub(z)  # of a hidden position 1e30, times p = 0
        return p.amax(-1), below.mul_(p).sum(0), p[:, 1:, 0].sum(0)  # [B*H, T], [T, T], [T - 1]

    return {"attn_logits": of_logits, "attn_weights": of_weights}


def attention(seen: StepTensors) -> tuple[Tensor, ...]:
    """Largest absolute logit, entropy as a fraction of its maximum, and weight on the first position, all
    [L]; arXiv:2309.14322, section 3.1, arXiv:2303.06296, and arXiv:2309.17453.

    Entropy = sum p (max z - z) - ln max p: one logarithm a row instead of one an entry, and no
    difference of large numbers.
    """
    is_causal = seen.config.mask == "causal"
    low, row_high = seen.recorder.reduced("attn_logits")
    row_p, below, on_first = seen.recorder.reduced("attn_weights")
    T, n = low.shape[-1], row_p.shape[1]
    largest = torch.maximum(row_high.amax(1), -(low.tril() if is_causal else low).amin((1, 2)))
    entropy = below.sum(-1) / n - row_p.log().mean(1)  # [L, T], mean over B*H
    if is_causal:
        share = (entropy[:, 1:] / torch.arange(2, T + 1, device=low.device).log()).mean(1)
    else:
        share = entropy.mean(1) / math.log(T)
    return largest, share, on_first.mean(1) / n


Instrument: TypeAlias = "Callable[[StepTensors], Tensor | tuple[Tensor, ...]]"
INSTRUMENTS: dict[tuple[str, ...], Instrument] = {
    ("grad_block",): grad_block,
    ("grad_w2",): grad_w2,
    ("grad_qk",): grad_qk,
    ("grad_hidden",): grad_hidden,
    ("branch_ratio", "branch_cosine", "branch_in_rms", "sum_rms"): branches,
    ("stream_max", "stream_max_ratio", "stream_kurtosis", "stream_rms", "token_cosine"): stream,
    ("attn_logit_max", "attn_entropy", "attn_sink"): attention,
    tuple(
        f"{which}_{what}" for which in ("normed", "summed") for what in ("rms", "grad", "cosine")
    ): two_streams,
}
ROWS = {key: i for i, key in enumerate(PROBES.keys())}
"""The row of each probe in the layers of a step of a decoder; a placement without the last ones has fewer."""


def keys_of(config: RunConfig) -> tuple[str, ...]:
    """The keys of the rows of a step's layers."""
    streams = SCHEMES[config.scheme].streams if config.scheme in SCHEMES else "one"
    return recorded_by(streams, config.family)


def site_recorder(config: RunConfig) -> Recorder:
    """A new recorder for one step, at the sites that the instruments read."""
    sizes = {"logits": lambda z: (torch.linalg.vector_norm(z) / z.numel() ** 0.5,)}
    if FAMILIES[config.family].is_recurrent:
        return Recorder(recurrent.SITES, recurrent.GRADIENTS, sizes)
    return Recorder(SITES, ("stream",), {**attention_reductions(), **sizes})


def _instruments(config: RunConfig) -> dict[tuple[str, ...], Instrument]:
    """The instruments of the config's family."""
    if not FAMILIES[config.family].is_recurrent:
        return INSTRUMENTS

    def of_layers(of: recurrent.OfLayers) -> Instrument:
        return lambda seen: of(seen.recorder, config.depth)

    return {keys: of_layers(of) for keys, of in recurrent.INSTRUMENTS.items()}


@torch.no_grad()
def probe_tensor(seen: StepTensors) -> Tensor:
    """The probes of one step that the placement has, [probes, L+1] float64, without norm drift and update
    ratio; layers that a probe does not have are NaN. Call it before clipping changes the gradients."""
    config, recorded = seen.config, keys_of(seen.config)
    shape, device = (config.rows + 1,), seen.flat.values.device
    rows = [torch.full(shape, torch.nan, dtype=torch.float64, device=device)] * len(recorded)
    for keys, instrument in _instruments(config).items():
        if keys[0] not in recorded:
            continue
        values = instrument(seen)
        for key, value in zip(
            keys, values if isinstance(values, tuple) else (values,), strict=True
        ):
            before = (PROBES[key].first_layer, 0)
            rows[recorded.index(key)] = pad(value.double(), before, value=torch.nan)
    return torch.stack(rows)


def layers_of(
    config: RunConfig, numbers: NDArray[np.float64], scales: NormScales
) -> NDArray[np.float64]:
    """[..., probes, L+1] the probes in `numbers` [..., probes x (L+1)] of `probe_tensor`, with the RMS of the
    change of each block's learned norm scales since the start, where that is recorded."""
    layers = numbers.reshape(*numbers.shape[:-1], -1, config.rows + 1).copy()
    if "norm_drift" in keys_of(config):
        layers[..., keys_of(config).index("norm_drift"), 1:] = scales.drift()
    return layers


@torch.no_grad()
def add_update_ratio(
    config: RunConfig, layers: NDArray[np.float64], blocks: Tensor, before: Tensor
) -> None:
    """Write the update ratio into `layers` [..., probes, L+1], where it is recorded; arXiv:2309.14322.

    `before` [..., L, P] holds the blocks before the update and is overwritten.
    """
    if "update_ratio" not in keys_of(config):
        return
    size = torch.linalg.vector_norm(before, dim=-1)
    step = torch.linalg.vector_norm(before.sub_(blocks), dim=-1)
    layers[..., keys_of(config).index("update_ratio"), 1:] = (step / size).cpu().numpy()
