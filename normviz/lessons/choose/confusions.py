"""Questions that people ask about placements, with what claims and maps answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from ...catalog import SCHEMES
from ...catalog.models import census
from ...catalog.registry import Registry
from ...home import shipped
from ...runs import Recording
from ...runs.archive import load
from ...studies.maps.link import standard
from ...studies.norm_cost import stored_results
from ...studies.norm_cost.findings import step_time, verdict
from ..anatomy import gradient_path
from ..presets import PRESETS
from .answers import MODERN, Answers
from .facts import CENSUS, COST, Finding, duel_address, map_address
from .picks import guide
from .properties import ClaimLine, claim_line, depth, warm_up

Measure = Callable[[], Iterator[Finding]]


@dataclass(frozen=True)
class Confusion:
    """A question, the claims that answer it, what was measured besides, and formulas by placement.

    The first claim's finding is the answer in short; with `by_measure` the first of what was measured is.
    """

    key: str
    label: str
    claims: tuple[str, ...]
    measure: Measure
    formulas: Callable[[], tuple[tuple[str, str], ...]] = tuple
    by_measure: bool = False

    @property
    def lines(self) -> tuple[ClaimLine, ...]:
        """Its claims with their verdicts."""
        return tuple(claim_line(key) for key in self.claims)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was measured besides."""
        return tuple(self.measure())

    @property
    def answer(self) -> Finding:
        """The answer in short."""
        if self.by_measure:
            return self.findings[0]
        return Finding(self.lines[0].finding, self.lines[0].to)


def _nothing() -> Iterator[Finding]:
    yield from ()


def _depths() -> Iterator[Finding]:
    for scheme in ("post", "pre"):
        if finding := depth(scheme):
            yield Finding(
                f"{SCHEMES.label(scheme)} trains at some rate with {finding.text}", finding.to
            )


def _warm() -> Iterator[Finding]:
    for scheme in ("pre", "post"):
        if finding := warm_up(scheme):
            yield Finding(f"{SCHEMES.label(scheme)}, {finding.text}", finding.to)


def _speed() -> Iterator[Finding]:
    measurement = stored_results.shipped()
    yield Finding(step_time(measurement), COST)
    yield Finding(f"{verdict(measurement)} ({measurement.text()})", COST)


def _census() -> Iterator[Finding]:
    counts = Counter(model.words[0] for model in census().models)
    listed = ", ".join(f"{n} {label}" for label, n in counts.most_common())
    yield Finding(
        f"Of {len(census().models)} stacks of blocks in transformers {census().transformers}: {listed}",
        CENSUS,
    )


@cache
def _hero() -> tuple[Recording, ...]:
    """The shipped runs of the first preset, one a lane."""
    wanted = [lane.key for lane in PRESETS["hero"].lanes()]
    files = sorted((shipped("assets") / "runs").glob("hero-*.npz"))
    recordings = {recording.config.key: recording for path in files for recording in load(path)}
    return tuple(recordings[key] for key in wanted if key in recordings)


def _gains() -> Iterator[Finding]:
    """What all blocks together do to the gradient of the loss, in the runs of the first preset."""
    lanes = PRESETS["hero"].lanes()
    for recording in _hero():
        grad, steps = recording.values("grad_hidden"), recording.steps.layer_steps
        words = ", ".join(
            f"{grad[row, 0] / grad[row, -1]:.2g} at step {steps[row]}" for row in (0, 31, -1)
        )
        yield Finding(
            f"{SCHEMES.label(recording.config.scheme)}, {recording.depth} blocks, one seed: on its way "
            f"from the last block to the embedding the gradient is multiplied by {words}",
            duel_address(lanes, probe="grad_hidden"),
        )


def _unrolled() -> tuple[tuple[str, str], ...]:
    """The stream as a sum and as a product, and the gradient path of one sublayer."""
    whole = (
        ("pre", r"x_L = x_0 + \sum_{l=1}^{2L} f_l(x_{l-1})"),
        ("post", r"\frac{\partial x_L}{\partial x_0} = \prod_{l=1}^{2L} J_l"),
    )
    paths = ((key, latex) for key, _ in whole for _, latex in gradient_path(key, 1))
    return tuple((SCHEMES.label(key), latex) for key, latex in (*whole, *paths))


def _modern() -> Iterator[Finding]:
    """What separates the placements of the map that has both."""
    depth = standard(MODERN).grid.base.depth
    for tuned, how in (("no", "not tuned"), ("yes", "tuned")):
        answer = guide(Answers(depth=str(depth), tuned=tuned))
        words = " ".join(filter(None, (f"{answer.headline}.", answer.others, answer.differs)))
        yield Finding(f"{depth} blocks, rate {how}. {words}", map_address(MODERN))


CONFUSIONS: Registry[Confusion] = Registry(
    "question",
    (
        Confusion("post", "Is Post-LN broken?", ("E1", "E2", "E9", "C9"), _depths),
        Confusion("warmup", "Does Pre-LN need a warm-up?", ("C5", "E1", "E14"), _warm, by_measure=True),
        Confusion(
            "rmsnorm", "Does RMSNorm train better than LayerNorm?", ("E11", "E12", "C21"), _nothing
        ),
        Confusion("speed", "Is RMSNorm faster than LayerNorm?", ("C18",), _speed, by_measure=True),
        Confusion(
            "unrolled", "Why does the gradient reach Pre-LN's first block and not Post-LN's?",
            ("E8", "C4", "C7"), _gains, _unrolled,
        ),
        Confusion("equal", "Is Pre-LN's gradient the same in every block?", ("C3", "C1"), _nothing),
        Confusion("quality", "Does Post-LN end better once it is tuned?", ("E7",), _nothing),
        Confusion(
            "modern", "Does the placement still matter with RMSNorm and QK-norm?", ("C14", "C17"),
            _modern, by_measure=True,
        ),
        Confusion("sandwich", "Is a norm on both sides better than one?", ("C16", "E13"), _nothing),
        Confusion("none", "Does it train without any norm?", ("E10", "C25", "C19"), _nothing),
        Confusion("users", "Do all language models use Pre-LN?", (), _census, by_measure=True),
    ),
)  # fmt: skip
