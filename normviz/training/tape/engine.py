"""The engine that runs a compiled model in C++, on the model's own flat buffers."""

from __future__ import annotations

import ctypes

import numpy as np
import torch
from numpy.typing import NDArray

from ...catalog import SCHEMES
from ...config import RunConfig
from ...model.flat import Flat
from ...model.transformer import Transformer
from ...native.library import load
from ..eager import EPS, Eager, clip
from ..engine import Batch, Unsupported
from ..probes.instruments import ROWS
from .arena import Buffers, arena
from .compile import compiled
from .operations import Kind, number
from .probes import Probes


class Run(ctypes.Structure):
    """The struct Run of tape.cpp."""

    _fields_ = (
        ("ops", ctypes.c_void_p), ("count", ctypes.c_int64), ("values", ctypes.c_void_p),
        ("grads", ctypes.c_void_p), ("parameters", ctypes.c_void_p),
        ("parameter_grads", ctypes.c_void_p), ("tokens", ctypes.c_void_p),
        ("targets", ctypes.c_void_p), ("batch", ctypes.c_int64), ("length", ctypes.c_int64),
        ("heads", ctypes.c_int64), ("watched", ctypes.c_int64), ("seen", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p), ("sums", ctypes.c_void_p), ("loss", ctypes.c_double),
    )  # fmt: skip


class Tape(Eager):
    """Forward and backward pass, probes and AdamW in C++, in float32 on one core of a CPU.

    What else moves parameters (SGD, Muon, rates of their own, constraints) is eager's. Raises Unsupported for
    a run that has no tape, and Unavailable where the library does not run.
    """

    name = "tape"

    def __init__(self, config: RunConfig, model: Transformer, flat: Flat) -> None:
        if flat.values.device.type != "cpu" or flat.values.dtype != torch.float32:
            where = f"{flat.values.device.type} in {flat.values.dtype}".replace("torch.", "")
            raise Unsupported(f"the tape runs on a CPU in float32, and this run is on {where}")
        self.library = load()
        program = compiled(config, model)
        super().__init__(config, model, flat)
        self.threads, self.steps = 1, 0
        laid = arena(program, flat)
        self.operations, self.rising = laid.operations, laid.rising
        self.buffers = buffers = Buffers(config, program, laid)
        self.run = Run(
            self.operations.ctypes.data, len(self.operations), buffers.values.ctypes.data,
            buffers.grads.ctypes.data, flat.values.data_ptr(), flat.grads.data_ptr(), 0, 0,
            config.batch, config.seq_len, config.heads, 0, buffers.attention.ctypes.data,
            buffers.scratch.ctypes.data, buffers.sums.ctypes.data, 0.0,
        )  # fmt: skip
        logits = program.operations[-1].a
        assert logits is not None
        at = laid.values[logits]
        self.logits = buffers.values[at : at + logits.rows * logits.width].reshape(-1, logits.width)
        T = config.seq_len
        saved = [laid.saves[o] for o in program.operations if o.kind == Kind.ATTENTION]
        heads = [buffers.values[at : at + config.heads * T * T].reshape(-1, T, T) for at in saved]
        self.of_last = [weights[:, :, -1] for weights in heads]  # they lie as [key, query]
        self.masks = [
            (buffers.values[(at := laid.saves[o]) : at + o.saved], dropout)
            for o, dropout in program.masks
        ]
        for o, table in program.tables:
            buffers.values[laid.saves[o] :][: table.size] = table.ravel()
        self.probes = Probes(self.library, config, program, laid, flat, buffers, self.scales)
        self.ratios = np.empty(config.depth)
        self.adamw_call = self._adamw_call()

    def _adamw_call(self) -> tuple[int, ...] | None:
        """What the library's AdamW is called with in each step; None where eager moves the parameters."""
        c, flat = self.config, self.flat
        is_plain = c.optimizer == "adamw" and c.moves_alike
        if not is_plain or SCHEMES[c.scheme].constraint != "none":
            return None
        (group,) = self.optimizer.groups
        (mean,), (square,) = group.means, group.squares
        return (
            len(flat.values), *flat.blocks.shape, flat.values.data_ptr(), flat.grads.data_ptr(),
            mean.data_ptr(), square.data_ptr(),
        )  # fmt: skip

    def step(self, batch: Batch, watched: bool) -> tuple[float, float]:
        for i, name, value in self.rising:
            self.operations[name][i] = number(value)
        for mask, dropout in self.masks:
            mask[:] = dropout.mask(len(mask))
        loss = self._forward(batch, watched)
        self.library.tape_backward(ctypes.byref(self.run))
        return loss, self.flat.grad_norm().item()

    def evaluate(self, batch: Batch) -> float:
        for mask, _ in self.masks:
            mask[:] = 1.0
        return self._forward(batch)

    def next_logits(self, tokens: torch.Tensor) -> NDArray[np.float32]:
        run, batch = self.run, self.run.batch
        one = self.operations.copy()  # of the first sequence alone
        one["rows"] //= batch
        run.ops, run.batch = one.ctypes.data, 1
        self.evaluate((tokens, torch.zeros_like(tokens)))
        run.ops, run.batch = self.operations.ctypes.data, batch
        return self.logits[tokens.shape[1] - 1]

    def looks(self) -> NDArray[np.float32]:
        return np.array([weights.mean(0) for weights in self.of_last])

    def _forward(self, batch: Batch, watched: bool = False) -> float:
        inputs, targets = self.batch = [x.contiguous() for x in batch]  # backward reads them again
        run = self.run
        run.tokens, run.targets, run.watched = inputs.data_ptr(), targets.data_ptr(), int(watched)
        self.library.tape_forward(ctypes.byref(run))
        return float(np.float32(run.loss))  # as eager's, which files keep exactly

    def layers(self) -> NDArray[np.float64]:
        return self.probes.probe_values()

    def logit_rms(self) -> float:
        flat = self.logits.reshape(-1)
        return float(np.sqrt(flat.dot(flat))) / flat.size**0.5

    def update(self, lr: float, grad_norm: float, layers: NDArray[np.float64] | None) -> None:
        config = self.config
        if self.adamw_call is None:
            super().update(lr, grad_norm, layers)
            return
        self.flat.add_passes()
        clip(config, self.flat, grad_norm)
        self.steps += 1
        self.library.tape_adamw(
            *self.adamw_call, lr, config.beta1, config.beta2, EPS, config.weight_decay, self.steps,
            None if layers is None else self.ratios.ctypes.data,
        )  # fmt: skip
        self.flat.share()
        if layers is not None:
            layers[ROWS["update_ratio"], 1:] = self.ratios
