"""The engine of PyTorch's own modules and autograd: it runs every config on every device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from ..catalog import SCHEMES, STREAMS
from ..catalog.choices import GATED
from ..catalog.inits import EMBEDDINGS, MATRICES
from ..config import RunConfig
from ..model.branches import Attention
from ..model.constraint import clip_qk, constrain
from ..model.flat import Flat
from ..model.marks import mark_of
from ..model.sites import Tap, untapped
from ..model.transformer import Transformer
from . import probes
from .engine import Batch, Engine


class Eager(Engine):
    """The model's forward pass, autograd, and PyTorch's optimizers."""

    name = "eager"

    def __init__(self, config: RunConfig, model: Transformer, flat: Flat) -> None:
        self.config, self.model, self.flat = config, model, flat
        self.threads = torch.get_num_threads()
        self.optimizer = Optimizer(config, model, flat)
        self.step_buffers = probes.StepBuffers()
        self.scales = probes.NormScales(model, flat)
        self.numbers: NDArray[np.float64] = np.empty(0)
        self.seen = probes.Recorder(())

    def step(self, batch: Batch, watched: bool) -> tuple[float, float]:
        self.numbers = self.numbers_of(batch, watched).cpu().numpy()  # a GPU is waited for once
        return float(self.numbers[0]), float(self.numbers[1])

    def numbers_of(self, batch: Batch, watched: bool) -> Tensor:
        """A forward and backward pass. Returns [2] the loss and the norm of the gradients, and if watched the
        RMS of the logits and all probes after it, [3 + probes x rows], float64."""
        tap = probes.site_recorder(self.config) if watched else None
        loss = backward(self.model, self.flat, batch, tap or untapped)
        head = [loss, self.flat.grad_norm()]
        if tap is None:
            return torch.stack(head).double()
        seen = probes.StepTensors(self.config, self.flat, tap, self.scales, self.step_buffers)
        head.append(tap.reduced("logits")[0].view(()))
        return torch.cat((torch.stack(head).double(), probes.probe_tensor(seen).flatten()))

    def layers(self) -> NDArray[np.float64]:
        return probes.layers_of(self.config, self.numbers[3:], self.scales)

    def logit_rms(self) -> float:
        return float(self.numbers[2])

    def update(self, lr: float, grad_norm: float, layers: NDArray[np.float64] | None) -> None:
        config, flat = self.config, self.flat
        before = None if layers is None else self.step_buffers.copy("before", flat.blocks)
        flat.add_passes()
        clip(config, flat, grad_norm)
        self.optimizer.step(lr)
        flat.share()
        if config.scheme in SCHEMES:
            constrain(config.scheme, flat.named())
        if config.qk_clip is not None:
            clip_qk(self.optimizer.attentions, config.qk_clip)
        if layers is not None and before is not None:
            probes.add_update_ratio(config, layers, flat.blocks, before)

    def evaluate(self, batch: Batch) -> float:
        self.model.eval()
        with torch.no_grad():
            loss = self.model.loss(*batch).item()
        self.model.train()
        return loss

    def next_logits(self, tokens: Tensor) -> NDArray[np.float32]:
        last = {"attn_weights": lambda p: (p[:, -1].mean(0),)}
        self.seen = probes.Recorder((), (), last)
        self.model.eval()
        with torch.no_grad():
            logits = self.model(tokens, self.seen)[0, -1]
        self.model.train()
        return logits.float().numpy()

    def looks(self) -> NDArray[np.float32]:
        rows = [row.float().numpy() for (row,) in self.seen.seen["attn_weights"]]
        return np.array(rows, np.float32)


def backward(model: Transformer, flat: Flat, batch: Batch, tap: Tap) -> Tensor:
    """Loss of a batch in nats, a scalar; its gradients are then in the flat buffer."""
    flat.grads.zero_()
    loss = model.loss(*batch, tap)
    loss.backward()
    return loss.detach()


EPS = 1e-8
"""AdamW's epsilon, in every engine."""
MOMENTUM = 0.95
"""Muon's, in torch.optim.Muon and in Jordan's code."""
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""The coefficients of Jordan's quintic iteration."""


@dataclass
class Group:
    """Parameters that AdamW or SGD moves with the same factors of the learning rate, weight decay and eps."""

    values: list[Tensor]
    grads: list[Tensor]
    lr: float = 1.0
    decay: float = 1.0
    eps: float = 1.0

    def __post_init__(self) -> None:
        self.momenta: list[Tensor | None] = [None] * len(self.values)
        self.means, self.squares = ([torch.zeros_like(g) for g in self.grads] for _ in range(2))
        self.taken = [torch.zeros((), device=g.device) for g in self.grads]


class Optimizer:
    """AdamW, SGD or Muon over the model's parameters, by PyTorch's functions where it has them.

    The classes in `torch.optim` call the same functions, but the first of them in a process imports
    torch._dynamo, which takes about as long as the import of torch itself; and Muon's takes one matrix at a
    time, in bfloat16.
    """

    def __init__(self, config: RunConfig, model: Transformer, flat: Flat) -> None:
        self.config = config
        self.matrices = list(_matrices(config, flat)) if config.optimizer == "muon" else []
        self.momenta = [torch.zeros_like(grad) for _, grad in self.matrices]
        self.groups = list(_groups(config, model, flat))
        self.attentions = [it for it in model.modules() if isinstance(it, Attention)]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Move the parameters by their gradients, at this learning rate."""
        c = self.config
        for (values, grads), momentum in zip(self.matrices, self.momenta, strict=True):
            momentum.lerp_(grads, 1.0 - MOMENTUM)
            values.mul_(1.0 - lr * c.weight_decay)
            longer = max(values.shape[-2:])
            change = orthogonalised(grads.lerp(momentum, MOMENTUM))
            values.sub_(change, alpha=lr * 0.2 * longer**0.5)
        for g in self.groups:
            rate, decay = lr * g.lr, c.weight_decay * g.decay
            if c.optimizer == "sgd":
                sgd(
                    g.values, g.grads, g.momenta, lr=rate, momentum=c.momentum, weight_decay=decay,
                    dampening=0.0, nesterov=False, maximize=False,
                )  # fmt: skip
            else:
                adamw(
                    g.values, g.grads, g.means, g.squares, [], g.taken, fused=True, lr=rate,
                    beta1=c.beta1, beta2=c.beta2, weight_decay=decay, eps=EPS * g.eps, amsgrad=False,
                    maximize=False,
                )  # fmt: skip


def _matrices(config: RunConfig, flat: Flat) -> Iterator[tuple[Tensor, Tensor]]:
    """The values and the gradients of what Muon moves: the matrices of all blocks [L, n, rows, columns],
    those of one name together. Query, key and value are n = 3 matrices, the gate and the values of an FFN 2.
    """
    several = {"qkv": 3, "up": 1 + (config.activation in GATED)}
    more = STREAMS[SCHEMES[config.scheme].streams].matrices
    for name in (*flat.shared, *(f"{F}.{m}.weight" for F in ("attention", "ffn") for m in more)):
        *_, map_, kind = name.split(".")
        if kind == "weight":
            shape = (several.get(map_, 1), -1, flat.shapes[name][1])
            values, grads = (
                x[:, flat.columns[name]].unflatten(1, shape)
                for x in (flat.blocks, flat.block_grads)
            )
            yield values, grads


def orthogonalised(x: Tensor) -> Tensor:
    """Matrices [..., rows, columns] with their singular values brought close to 1, by five Newton-Schulz
    steps in the format of x (Jordan 2024, kellerjordan.github.io/posts/muon)."""
    a, b, c = NEWTON_SCHULZ
    tall = x.shape[-2] > x.shape[-1]
    y = x.mT if tall else x
    y = y / torch.linalg.matrix_norm(y, keepdim=True).clamp_min(1e-7)
    for _ in range(5):
        gram = y @ y.mT
        y = a * y + (b * gram + c * gram @ gram) @ y
    return y.mT if tall else y


def is_read(name: str) -> bool:
    """Whether a parameter is the scale of a norm whose output a matrix reads."""
    read = r"(\b|_)(norm_in|norm_inner|final_norm)\.(weight|scale|offset)$"
    return re.search(read, name) is not None


def decays(decay_on: str, is_matrix: bool, read: bool) -> bool:
    """Whether weight decay shrinks a matrix, or else the scale of a norm that a matrix reads or any other."""
    return is_matrix or decay_on == "all" or (read and decay_on == "input_norms")


def _groups(config: RunConfig, model: Transformer, flat: Flat) -> Iterator[Group]:
    """The groups of parameters that AdamW or SGD moves: all that Muon does not."""
    c, m, deep = config, config.times_base_width, config.times_base_depth
    if c.moves_alike:
        yield Group([flat.optimised], [flat.grads])
        return
    inside = {id(p) for p in model.blocks.parameters()}
    by_kind: dict[tuple[bool, bool, bool], list[nn.Parameter]] = {}
    for name, p in model.named_parameters():
        role = mark_of(p) or ""
        is_matrix, is_inside = role in (*MATRICES, *EMBEDDINGS), id(p) in inside
        if c.optimizer != "muon" or role not in MATRICES:
            by_kind.setdefault((is_matrix, is_inside, is_read(name)), []).append(p)
    for (is_matrix, is_inside, read), parameters in by_kind.items():
        hidden = is_matrix and is_inside
        yield Group(
            [p.data for p in parameters],
            [p.grad for p in parameters if p.grad is not None],
            lr=1.0 / m if hidden else 1.0,
            decay=(m if hidden else 1.0) * decays(c.decay_on, is_matrix, read),
            eps=1.0 / (m * deep) if is_inside else 1.0 / m,
        )


def clip(config: RunConfig, flat: Flat, grad_norm: float) -> None:
    """Scale all gradients so that their norm is at most the config's."""
    if config.clip is not None and grad_norm > config.clip:
        flat.grads.mul_(config.clip / grad_norm)
