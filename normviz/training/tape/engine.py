"""The engine that runs a compiled model in C++, on the model's own flat buffers."""

from __future__ import annotations

import ctypes

import numpy as np
import torch
from numpy.typing import NDArray

from ...catalog import PROBES, SCHEMES
from ...catalog.probes import recorded_by
from ...config import RunConfig
from ...model.flat import Flat
from ...model.transformer import Transformer
from ...native.library import load
from ...probes.instruments import ROWS
from ..eager import EPS, Eager, clip
from ..engine import Batch
from .arena import arena
from .compile import Unsupported, compiled
from .operations import Kind, Number, Place, Program, number

Offsets = NDArray[np.int64]
FIRST = {probe.key: probe.first_layer for probe in PROBES}
"""The first layer that a quantity has."""


class Lengths:
    """A call that measures the L2 norms of stretches of `size` floats, `at` places from an address."""

    def __init__(self, address: int, at: Offsets, size: int) -> None:
        self.at, self.out = at, np.empty(len(at))
        self.call = (len(at), address, at.ctypes.data, size, self.out.ctypes.data)


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


def buffers(config: RunConfig, program: Program) -> tuple[int, int]:
    """How many floats and how many doubles `scratch` and `sums` of the struct have."""
    c, gains = config, [o.n // o.k for o in program.operations if o.kind == Kind.GAIN]
    scratch = max(c.seq_len**2 + 8 * c.seq_len, (c.seq_len + 1) * c.width, *gains)
    return scratch, max(2 * max(gains, default=1), 2 * c.width, c.seq_len)


class Tape(Eager):
    """Forward and backward pass, probes and AdamW in C++, in float32 on one core of a CPU.

    SGD and constraints are eager's. Raises Unsupported for a run that has no tape, and Unavailable
    where the library does not run.
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
        c, laid = config, arena(program, flat)
        self.operations, self.rising = laid.operations, laid.rising
        scratch, sums = buffers(config, program)
        self.values = np.zeros(laid.value_size, np.float32)
        self.hidden = np.zeros(laid.grad_size, np.float32)
        self.scratch = np.zeros(scratch, np.float32)
        self.sums = np.zeros(sums)
        self.sizes = np.zeros(c.batch * c.seq_len * c.width, np.int32)
        self.seen = np.zeros((c.depth, 3))
        self.run = Run(
            self.operations.ctypes.data, len(self.operations), self.values.ctypes.data,
            self.hidden.ctypes.data, flat.values.data_ptr(), flat.grads.data_ptr(), 0, 0, c.batch,
            c.seq_len, c.heads, 0, self.seen.ctypes.data, self.scratch.ctypes.data,
            self.sums.ctypes.data, 0.0,
        )  # fmt: skip

        logits = program.operations[-1].a
        assert logits is not None
        at = laid.values[logits]
        self.logits = self.values[at : at + logits.rows * logits.width].reshape(-1, logits.width)
        self.masks = [
            (self.values[(at := laid.saves[o]) : at + o.saved], dropout)
            for o, dropout in program.masks
        ]

        for o, table in program.tables:
            self.values[laid.saves[o] :][: table.size] = table.ravel()

        def places(of: dict[Place, int], tensors: list[Place]) -> Offsets:
            return np.array([of[x.base] + x.column for x in tensors], np.int64)

        self.stream = places(laid.values, program.stream)
        self.stream_grads = places(laid.grads, program.stream)
        self.skip = places(laid.values, [x for x, _ in program.skip])
        self.branch = places(laid.values, [x for x, _ in program.branch])
        self.reads = places(laid.values, program.reads)
        self.factors: list[list[Number]] = [
            [x for _, x in some] for some in (program.skip, program.branch)
        ]
        self.rises = any(callable(x) for some in self.factors for x in some)
        self.parts = self._parts()
        self.of_stream, self.of_branches = np.empty((c.depth + 1, 5)), np.empty((2 * c.depth, 5))
        # Made once: each address and each pointer costs a microsecond, in every recorded step.
        self.stream_call = (
            c.depth + 1, self.values.ctypes.data, self.stream.ctypes.data, c.batch, c.seq_len, c.width,
            self.scratch.ctypes.data, self.sizes.ctypes.data, self.sums.ctypes.data,
            self.of_stream.ctypes.data,
        )  # fmt: skip
        self.branches_call = (
            2 * c.depth, self.values.ctypes.data, self.reads.ctypes.data, self.skip.ctypes.data,
            self.branch.ctypes.data, c.batch * c.seq_len, c.width, self.of_branches.ctypes.data,
        )  # fmt: skip
        self.ratios = np.empty(c.depth)
        self.adamw_call: tuple[int, ...] | None = None
        is_plain = c.optimizer == "adamw" and self.optimizer.is_plain
        if is_plain and SCHEMES[c.scheme].constraint == "none":
            (group,) = self.optimizer.groups
            (mean,), (square,) = group.means, group.squares
            self.adamw_call = (
                len(flat.values), *flat.blocks.shape, flat.values.data_ptr(), flat.grads.data_ptr(),
                mean.data_ptr(), square.data_ptr(),
            )  # fmt: skip
        self.recorded = recorded_by("one")
        rows: Offsets = np.arange(c.depth, dtype=np.int64) * flat.blocks.shape[1]
        w2 = flat.columns["ffn.branch.down.weight"]
        size, grads = c.batch * c.seq_len * c.width, flat.grads.data_ptr()
        self.lengths = {
            "grad_block": Lengths(grads, rows, flat.blocks.shape[1]),
            "grad_w2": Lengths(grads, rows + w2.start, w2.stop - w2.start),
            "grad_qk": Lengths(
                grads, rows + flat.columns["attention.branch.qkv.weight"].start, 2 * c.width**2
            ),
            "grad_hidden": Lengths(self.hidden.ctypes.data, self.stream_grads, size),
        }

    def step(self, batch: Batch, watched: bool) -> float:
        for i, name, value in self.rising:
            self.operations[name][i] = number(value)
        for mask, dropout in self.masks:
            mask[:] = dropout.mask(len(mask))
        loss = self._forward(batch, watched)
        self.library.tape_backward(ctypes.byref(self.run))
        return loss

    def evaluate(self, batch: Batch) -> float:
        for mask, _ in self.masks:
            mask[:] = 1.0
        return self._forward(batch)

    def next_token(self, tokens: torch.Tensor) -> int:
        self.evaluate((tokens, torch.zeros_like(tokens)))
        return int(self.logits[tokens.shape[1] - 1].argmax())

    def _forward(self, batch: Batch, watched: bool = False) -> float:
        inputs, targets = self.batch = [x.contiguous() for x in batch]  # backward reads them again
        run = self.run
        run.tokens, run.targets, run.watched = inputs.data_ptr(), targets.data_ptr(), int(watched)
        self.library.tape_forward(ctypes.byref(run))
        return float(np.float32(run.loss))  # as eager's, which files keep exactly

    def layers(self) -> NDArray[np.float64]:
        c = self.config
        size = c.batch * c.seq_len * c.width
        self.library.tape_stream(*self.stream_call)
        self.library.tape_branches(*self.branches_call)
        for one in self.lengths.values():
            self.library.tape_lengths(*one.call)
        with np.errstate(all="ignore"):  # NaN and inf are results
            skip_part, branch_part = self._parts() if self.rises else self.parts
            reads, skip, branch, cosine, product = self.of_branches.T
            share = branch_part / skip_part
            ratio = np.abs(share) * branch / skip
            squares = (skip_part * skip) ** 2 + (branch_part * branch) ** 2
            added = np.sqrt(np.maximum(squares + 2 * skip_part * branch_part * product, 0.0))
            cosine = np.sign(branch_part * skip_part) * cosine
            of_blocks = np.array((ratio, cosine, reads, added)).reshape(4, -1, 2).mean(2)
            lengths, cosines, largest, median, kurtosis = self.of_stream.T
            outlier = largest / median
        found = {
            **{key: one.out for key, one in self.lengths.items()},
            "branch_ratio": of_blocks[0],
            "stream_rms": lengths / size**0.5,
            "token_cosine": cosines,
            "attn_logit_max": self.seen[:, 0],
            "attn_entropy": self.seen[:, 1],
            "stream_max": largest,
            "stream_max_ratio": outlier,
            "stream_kurtosis": kurtosis,
            "attn_sink": self.seen[:, 2],
            "branch_cosine": of_blocks[1],
            "branch_in_rms": of_blocks[2] / size**0.5,
            "sum_rms": of_blocks[3] / size**0.5,
            "norm_drift": self.scales.drift(),
        }
        out = np.full((len(self.recorded), c.depth + 1), np.nan)
        for key, values in found.items():
            out[ROWS[key], FIRST[key] :] = values
        return out

    def logit_rms(self) -> float:
        flat = self.logits.reshape(-1)
        return float(np.sqrt(flat.dot(flat))) / flat.size**0.5

    def update(
        self, config: RunConfig, lr: float, grad_norm: float, layers: NDArray[np.float64] | None
    ) -> None:
        if self.adamw_call is None:
            super().update(config, lr, grad_norm, layers)
            return
        clip(config, self.flat, grad_norm)
        self.steps += 1
        self.library.tape_adamw(
            *self.adamw_call, lr, config.beta1, config.beta2, EPS, config.weight_decay, self.steps,
            None if layers is None else self.ratios.ctypes.data,
        )  # fmt: skip
        if layers is not None:
            layers[ROWS["update_ratio"], 1:] = self.ratios

    def _parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The constant factors of the skip path and of the branch of each sublayer, at the present step."""
        skip, branch = (np.array([number(x) for x in some]) for some in self.factors)
        return skip, branch
