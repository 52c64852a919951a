"""The setting of a measurement, validated: width, tokens, threads, device, and seconds to spend."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import ConfigError, RunConfig
from ..cores import cores
from ..limits import MAX_GIB, Range, estimated_gib, estimated_seconds
from .variants import VARIANTS

HEAD = 32
"""Channels of an attention head."""
SEQ_LEN = 64
DEPTH = 2
WIDTHS = Range(32, 1024, whole=True)
TOKENS = Range(64, 16_384, whole=True)
SECONDS = Range(1, 300)
DEVICES = ("cpu", "cuda")

MIN_ROUNDS, MAX_ROUNDS = 8, 60
"""Fewer rounds give too wide an interval; in more rounds the machine itself drifts."""
MAX_SECONDS = 180.0
"""Limit of the estimate for the fewest rounds on a CPU, because training waits for a measurement."""
STEPS_A_ROUND = 3 * (1 + 1 / 2 + 1 / 6)
"""Cost of a variant in steps: a step, one of its two blocks both ways, and a third of that forward;
each three times."""


@dataclass(frozen=True)
class Setting:
    """Width (numbers per token), tokens per batch, CPU threads, device, and seconds to spend.

    Raises ValueError with a sentence for a value that is not allowed.
    """

    width: int = 128
    tokens: int = 512
    threads: int = 1
    device: str = "cpu"
    seconds: float = 15.0

    def __post_init__(self) -> None:
        _check("width", self.width, WIDTHS, HEAD)
        _check("tokens", self.tokens, TOKENS, SEQ_LEN)
        _check("threads", self.threads, Range(1, cores(), whole=True))
        _check("seconds", self.seconds, SECONDS)
        if self.device not in DEVICES:
            raise ValueError(f"device is {self.device[:40]!r}, allowed are {' and '.join(DEVICES)}")
        try:
            self.config()
        except ConfigError:
            raise ValueError(
                f"width {self.width} with {self.tokens:,} tokens is more than a run may take here: lower "
                "width or tokens"
            ) from None
        if self.needed_seconds > MAX_SECONDS:
            raise ValueError(
                f"width {self.width} with {self.tokens:,} tokens would take about "
                f"{self.needed_seconds:,.0f} s and at most {MAX_SECONDS:g} are allowed, since no run "
                "trains meanwhile: lower width or tokens"
            )
        if self.needed_gib > MAX_GIB:
            raise ValueError(
                f"width {self.width} with {self.tokens:,} tokens would need about "
                f"{self.needed_gib:.1f} GiB of memory and at most {MAX_GIB:g} are allowed: lower "
                "width or tokens"
            )

    def config(self) -> RunConfig:
        """The model and training step that contain the norms.

        It uses PyTorch's initialisation and a learning rate near zero: every step does the same
        arithmetic, and none overflows without a norm.
        """
        return RunConfig(
            scheme="pre", norm="layernorm", init="torch", depth=DEPTH, width=self.width,
            heads=self.width // HEAD, seq_len=SEQ_LEN, batch=self.tokens // SEQ_LEN, lr=1e-6, steps=1,
            device=self.device,
        )  # fmt: skip

    @property
    def needed_seconds(self) -> float:
        """Estimated seconds of the fewest rounds on a CPU; 0 on a GPU."""
        if self.device != "cpu":
            return 0.0
        step = estimated_seconds(self.config().replace(steps=0)) / self.threads
        return MIN_ROUNDS * len(VARIANTS) * STEPS_A_ROUND * step

    @property
    def needed_gib(self) -> float:
        """Estimated memory in GiB; every variant has its own model."""
        return len(VARIANTS) * estimated_gib(self.config())

    def text(self) -> str:
        """In words: "width 128, 512 tokens, 1 thread, CPU"."""
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"width {self.width}, {self.tokens:,} tokens, {threads}, {self.device.upper()}"


def _check(name: str, value: float, allowed: Range, multiple: int = 1) -> None:
    if isinstance(value, bool) or value not in allowed or (allowed.whole and value % multiple):
        text = allowed.text()
        if multiple > 1:
            text = f"a multiple of {multiple} from {allowed.low:g} to {allowed.high:g}"
        raise ValueError(f"{name} is {value!r}, allowed is {text}")
