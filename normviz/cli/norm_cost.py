"""`normviz bench norms`: the time of norms on this machine, relative to LayerNorm."""

from __future__ import annotations

import sys
from pathlib import Path

from ..config import ConfigError
from ..execution import TaskError
from ..formats import megabytes, timing
from ..home import home
from ..runs.store import Store, StoreError
from ..studies.norm_cost import findings, stored_results
from ..studies.norm_cost.findings import CLAIMS
from ..studies.norm_cost.result import CostSetting, Measurement
from ..studies.norm_cost.variants import CONTEXTS, CONTROL, PASSES, REFERENCE, VARIANTS
from .errors import complain
from .places import check_file


def norms(
    width: int, tokens: int, threads: int, device: str, seconds: float, out: Path | None
) -> str:
    """The table of a measurement; `out` stores it as JSON as well."""
    try:
        check_file(out, (".json",), "--out")
        setting = CostSetting(width, tokens, threads, device, seconds)
        measurement = _follow(setting)
        if out is not None:
            stored_results.write(measurement, out)
    except (TaskError, ConfigError, StoreError, ValueError) as error:
        complain(error)
    except OSError as error:
        complain(f"the result can't be kept: {error}")
    return table(measurement)


def _follow(setting: CostSetting) -> Measurement:
    """Measure with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console, bar = Console(stderr=True), (TextColumn("{task.description}"), BarColumn())
    hidden = not sys.stderr.isatty()
    with Progress(*bar, console=console, disable=hidden, transient=True) as progress:
        task = progress.add_task("loading, and waiting for runs that train here", total=1.0)
        from ..studies.norm_cost.measure import measure

        for news in measure(setting, Store(home())):
            if isinstance(news, Measurement):
                return news
            words = f"round {news.done + 1} of {news.total}, about {news.left:.0f} s left"
            progress.update(task, description=words, completed=news.done / news.total)
    raise AssertionError("a measurement ends with its result")


def table(measurement: Measurement) -> str:
    """The whole measurement as text."""
    lines = [
        f"{measurement.text()}; PyTorch {measurement.torch}; medians of {measurement.rounds} rounds, "
        "95 % intervals"
    ]
    for context in CONTEXTS:
        for passes in context.passes:
            lines.append(f"{context.label.lower()}, {PASSES[passes]}: {context.sentence}")
            for row in measurement.rows_of(context.key, passes):
                ratio = row.ratio
                alike = row.variant not in (REFERENCE, CONTROL) and not measurement.differs(row)
                told_apart = "  not distinguishable" if alike else ""
                sums = f"{row.operations:5.1f} a number" if context.key == "alone" else ""
                lines.append(
                    f"  {VARIANTS.label(row.variant):24} {timing(row.seconds):>8}  "
                    f"{ratio.median:7.3f} ({ratio.low:.3f} to {ratio.high:.3f})  "
                    f"{row.kernels:4} kernels, {megabytes(row.bytes):>8} {sums}{told_apart}"
                )
    lines += [findings.verdict(measurement), findings.counted(measurement)]
    lines += [f"claimed: RMSNorm {claim.label} ({claim.source})" for claim in CLAIMS]
    return "\n".join(lines)
