"""A measurement's findings, in sentences computed from its numbers, and published claims to compare with."""

from __future__ import annotations

from dataclasses import dataclass

from ...formats import megabytes
from .result import Measurement, Ratio, Row
from .variants import BOTH, CONTEXTS, CONTROL, LIBRARY, REFERENCE, VARIANTS

BUSY = 0.7
"""A load average from which the sentence mentions other work."""
REPLAYED = (
    "On this GPU a norm and a block are replays of their kernels, without the time that the host needs to "
    "start each; a training step is that of the engine `captured`."
)


def verdict(measurement: Measurement) -> str:
    """What the norms cost in a whole step, and where that was measured; then RMSNorm's time in it, compared
    with what is claimed, and with LayerNorm's where both are hand-written."""
    sentences = [
        f"{without(measurement)}. Measured with {measurement.text()}.",
        step_time(measurement),
        _claims(measurement, measurement.row(LIBRARY, "step")),
        _by_hand(measurement),
    ]
    if measurement.load is not None and measurement.load >= BUSY:
        sentences.append(
            f"The machine was busy with other work (load {measurement.load:g} just before)."
        )
    if measurement.setting.device == "cuda":
        sentences.append(REPLAYED)
    alone = measurement.row(LIBRARY, "alone")
    sentences.append(f"Alone, forward and backward, {_compared(measurement, alone)}.")
    return " ".join(sentences)


def without(measurement: Measurement) -> str:
    """A whole training step without norms against one with LayerNorm, as in "Without its norms a whole
    training step takes 2.8 % less time than with LayerNorm (2.4 to 3.1 %)"."""
    row = measurement.row("none", "step")
    step, span = "Without its norms a whole training step takes", interval(row.ratio)
    if not measurement.differs(row):
        return f"{step} as long as with LayerNorm as far as can be told: {span} times its time"
    by = [100 * abs(1 - ratio) for ratio in (row.ratio.median, row.ratio.low, row.ratio.high)]
    low, high = sorted(by[1:])
    word = "less" if row.ratio.median < 1 else "more"
    return f"{step} {by[0]:.1f} % {word} time than with LayerNorm ({low:.1f} to {high:.1f} %)"


def step_time(measurement: Measurement) -> str:
    """RMSNorm's time in a whole training step."""
    return f"In a whole training step {_compared(measurement, measurement.row(LIBRARY, 'step'))}."


def counted(measurement: Measurement) -> str:
    """The cause: operations of the formula, and kernels and bytes of the implementation."""
    ln, rms = measurement.row(REFERENCE, "alone"), measurement.row(LIBRARY, "alone")
    return (
        f"Forward and backward, RMSNorm's formula needs {rms.operations:.0f} operations a number and "
        f"LayerNorm's {ln.operations:.0f}; as PyTorch runs them here that is {_kernels(rms)} that "
        f"read and write {megabytes(rms.bytes)}, and {_kernels(ln)} with {megabytes(ln.bytes)}."
    )


def finding(measurement: Measurement, context: str) -> str:
    """The finding of a chart: every variant's ratio in one context."""
    sentences = [
        f"{VARIANTS.label(row.variant)}{_pass(row)} {interval(row.ratio)}"
        f"{'' if measurement.differs(row) else ', not distinguishable'}"
        for row in measurement.rows_of(context)
        if row.variant not in (REFERENCE, CONTROL)
    ]
    noise = measurement.noise(context)
    return (
        f"{CONTEXTS.label(context)}, time as a multiple of LayerNorm's: {'; '.join(sentences)}. LayerNorm "
        f"against itself: {noise.low:.3f} to {noise.high:.3f}."
    )


def _compared(measurement: Measurement, row: Row) -> str:
    """Compare with LayerNorm: "RMSNorm (library) takes 1.03 times LayerNorm's time (1.02 to 1.04)"."""
    label, span = VARIANTS.label(row.variant), interval(row.ratio)
    if not measurement.differs(row):
        return f"{label} is not distinguishable from LayerNorm: {span} times its time"
    return f"{label} takes {span} times LayerNorm's time"


def _claims(measurement: Measurement, row: Row) -> str:
    """Which of the claimed savings this measurement reaches."""
    reached = [c.label for c in CLAIMS if measurement.differs(row) and row.ratio.median <= c.ratio]
    if reached:
        return f"Of the savings that are claimed for RMSNorm it reaches: {', '.join(reached)}."
    if row.ratio.low <= CLAIMS[0].ratio:
        return "The interval is too wide to rule the savings out that are claimed for RMSNorm."
    return f"With it the savings that are claimed for RMSNorm, {CLAIMS[0].low:g} % and more, do not show."


def _by_hand(measurement: Measurement) -> str:
    """Compare both as models without fused kernels have them."""
    rms, ln = (measurement.row(f"{norm}_hand", "step").ratio for norm in (LIBRARY, REFERENCE))
    less = 100 * (1 - round(rms.median, _digits(rms)) / round(ln.median, _digits(ln)))  # as printed
    words = f"{abs(less):.1f} % {'less' if less > 0 else 'more'}"
    words = "not distinguishable" if rms.overlaps(ln) else words
    return (
        f"Both hand-written, RMSNorm takes {interval(rms)} and hand-written LayerNorm {interval(ln)} times "
        f"LayerNorm's time: {words}."
    )


def _pass(row: Row) -> str:
    return "" if row.context == "step" else (" both ways" if row.passes == BOTH else " forward")


def _kernels(row: Row) -> str:
    return f"{row.kernels} kernel{'s' * (row.kernels != 1)}"


def _digits(ratio: Ratio) -> int:
    return 3 if 0.8 < ratio.median < 1.25 else 2


def interval(ratio: Ratio) -> str:
    """Median and interval: "1.03 (1.02 to 1.04)", with digits by its size."""
    digits = _digits(ratio)
    return f"{ratio.median:.{digits}f} ({ratio.low:.{digits}f} to {ratio.high:.{digits}f})"


# Published claims about RMSNorm's speed, drawn as lines beside the measurement.


@dataclass(frozen=True)
class PublishedSpeed:
    """`source` claims that RMSNorm takes `low` to `high` percent less time than LayerNorm."""

    low: float
    high: float
    source: str

    @property
    def ratio(self) -> float:
        """Time over LayerNorm's that the claim implies at least."""
        return (100 - self.low) / 100

    @property
    def label(self) -> str:
        """The claimed saving in words, as in "7 to 64 % less"."""
        return f"{self.low:g} to {self.high:g} % less"


CLAIMS = (
    PublishedSpeed(1, 10, "arXiv:2305.14858, for whole Pre-LN transformers"),
    PublishedSpeed(7, 64, "arXiv:1910.07467, over its models"),
    PublishedSpeed(10, 15, "READMEs and tutorials, without a measurement"),
    PublishedSpeed(15, 20, "READMEs and tutorials, without a measurement"),
)
"""By the least saving. All are about models on GPUs, or do not say."""
