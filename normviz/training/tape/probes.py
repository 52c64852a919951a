"""The probes of a step on the tape: calls of the library that reduce activations and gradients."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from ...catalog import PROBES
from ...catalog.probes import recorded_by
from ...config import RunConfig
from ...model.flat import Flat
from ..probes import NormScales
from ..probes.instruments import ROWS
from .arena import Arena, Buffers
from .operations import Number, Place, Program, number

Offsets = NDArray[np.int64]


class Lengths:
    """A call that measures the L2 norms of stretches of `size` floats, `at` places from an address."""

    def __init__(self, address: int, at: Offsets, size: int) -> None:
        self.at, self.out = at, np.empty(len(at))
        self.call = (len(at), address, at.ctypes.data, size, self.out.ctypes.data)


class Probes:
    """Reads the probes of the last step. The calls are made once: each address and each pointer costs a
    microsecond, in every recorded step."""

    def __init__(
        self,
        library: ctypes.CDLL,
        config: RunConfig,
        program: Program,
        laid: Arena,
        flat: Flat,
        buffers: Buffers,
        scales: NormScales,
    ) -> None:
        self.library, self.config, self.buffers, self.scales = library, config, buffers, scales
        self.recorded = recorded_by("one")
        self.factors: list[list[Number]] = [
            [x for _, x in some] for some in (program.skip, program.branch)
        ]
        self.rises = any(callable(x) for some in self.factors for x in some)
        self.parts = self._parts()
        self._prepare_activations(config, program, laid, buffers)
        self._prepare_gradients(config, program, laid, flat, buffers)

    def _prepare_activations(
        self, config: RunConfig, program: Program, laid: Arena, buffers: Buffers
    ) -> None:
        """The calls that reduce the stream, and the skip paths and branches."""
        c = config
        self.stream = offsets(laid.values, program.stream)
        self.skip = offsets(laid.values, [x for x, _ in program.skip])
        self.branch = offsets(laid.values, [x for x, _ in program.branch])
        self.reads = offsets(laid.values, program.reads)
        self.sizes = np.zeros(c.batch * c.seq_len * c.width, np.int32)
        self.of_stream, self.of_branches = np.empty((c.depth + 1, 5)), np.empty((2 * c.depth, 5))
        self.stream_call = (
            c.depth + 1, buffers.values.ctypes.data, self.stream.ctypes.data, c.batch, c.seq_len,
            c.width, buffers.scratch.ctypes.data, self.sizes.ctypes.data, buffers.sums.ctypes.data,
            self.of_stream.ctypes.data,
        )  # fmt: skip
        self.branches_call = (
            2 * c.depth, buffers.values.ctypes.data, self.reads.ctypes.data, self.skip.ctypes.data,
            self.branch.ctypes.data, c.batch * c.seq_len, c.width, self.of_branches.ctypes.data,
        )  # fmt: skip

    def _prepare_gradients(
        self, config: RunConfig, program: Program, laid: Arena, flat: Flat, buffers: Buffers
    ) -> None:
        """The calls that measure gradients, by quantity."""
        c, width = config, flat.blocks.shape[1]
        rows: Offsets = np.arange(c.depth, dtype=np.int64) * width
        w2, qkv = (flat.columns[f"{x}.weight"] for x in ("ffn.branch.down", "attention.branch.qkv"))
        parameters = flat.grads.data_ptr()
        self.lengths = {
            "grad_block": Lengths(parameters, rows, width),
            "grad_w2": Lengths(parameters, rows + w2.start, w2.stop - w2.start),
            "grad_qk": Lengths(parameters, rows + qkv.start, 2 * c.width**2),
            "grad_hidden": Lengths(
                buffers.grads.ctypes.data, offsets(laid.grads, program.stream),
                c.batch * c.seq_len * c.width,
            ),
        }  # fmt: skip

    def probe_values(self) -> NDArray[np.float64]:
        """All probes of the last step except the update ratio, [probes, L+1] as in `events.Step`."""
        c = self.config
        size = c.batch * c.seq_len * c.width
        self.library.tape_stream(*self.stream_call)
        self.library.tape_branches(*self.branches_call)
        for entry in self.lengths.values():
            self.library.tape_lengths(*entry.call)
        attention = self.buffers.attention
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
        by_probe = {
            **{key: entry.out for key, entry in self.lengths.items()},
            "branch_ratio": of_blocks[0],
            "stream_rms": lengths / size**0.5,
            "token_cosine": cosines,
            "attn_logit_max": attention[:, 0],
            "attn_entropy": attention[:, 1],
            "stream_max": largest,
            "stream_max_ratio": outlier,
            "stream_kurtosis": kurtosis,
            "attn_sink": attention[:, 2],
            "branch_cosine": of_blocks[1],
            "branch_in_rms": of_blocks[2] / size**0.5,
            "sum_rms": of_blocks[3] / size**0.5,
            "norm_drift": self.scales.drift(),
        }
        out = np.full((len(self.recorded), c.depth + 1), np.nan)
        for key, values in by_probe.items():
            out[ROWS[key], PROBES[key].first_layer :] = values
        return out

    def _parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The constant factors of the skip path and of the branch of each sublayer, at the present step."""
        skip, branch = (np.array([number(x) for x in some]) for some in self.factors)
        return skip, branch


def offsets(of: dict[Place, int], tensors: list[Place]) -> Offsets:
    """Where tensors begin in a buffer, in floats [n]; `of` has the tensors with memory of their own."""
    return np.array([of[x.base] + x.column for x in tensors], np.int64)
