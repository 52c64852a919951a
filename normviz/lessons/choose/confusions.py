"""Questions that people ask about placements: a plain answer, then claims and what was measured.

The first word of an answer, and each of its numbers, comes from the shipped results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ...catalog import NORMS, SCHEMES
from ...catalog.models import census
from ...catalog.registry import Registry
from ...formats import listed
from ...home import shipped
from ...runs import Recording
from ...runs.archive import load
from ...studies.claims import CLAIMS
from ...studies.claims.stored import shipped_result
from ...studies.maps.link import standard
from ...studies.norm_cost import stored_results
from ...studies.norm_cost.findings import step_time, verdict
from ...studies.norm_cost.variants import LIBRARY
from ..anatomy import gradient_path
from ..presets import PRESETS
from .answers import GUESSES, MAP, MODERN, depths, map_of
from .facts import (
    CENSUS,
    COST,
    Finding,
    conditions,
    duel_address,
    map_address,
    measured,
    setting,
    tried,
)
from .picks import ordered
from .properties import (
    WARM,
    ClaimLine,
    by_depth,
    claim_line,
    deepest,
    depth,
    gradient,
    reach,
    warm_up,
)

Measure = Callable[[], Iterator[Finding]]


@dataclass(frozen=True)
class Confusion:
    """A question, the function that answers it in a sentence, the claims about it, and what was measured
    besides.

    formulas   a label and LaTeX each
    symbols    what the formulas are written with
    """

    key: str
    label: str
    answers: Callable[[], Finding]
    claims: tuple[str, ...] = ()
    measure: Measure | None = None
    formulas: Callable[[], tuple[tuple[str, str], ...]] = tuple
    symbols: str = ""

    @property
    def lines(self) -> tuple[ClaimLine, ...]:
        """Its claims with their verdicts."""
        return tuple(claim_line(key) for key in self.claims)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was measured besides."""
        return tuple(self.measure()) if self.measure else ()

    @property
    def answer(self) -> Finding:
        """The plain answer, in a sentence."""
        return self.answers()


# Answers that a claim gives.

KINDS: Mapping[str, str] = {
    "holds": "Yes", "contradicted": "No", "holds in part": "In part",
    "no difference found": "No difference measured", "undecided": "Undecided",
}  # fmt: skip


def _by(key: str, **words: str) -> Callable[[], Finding]:
    """The finding of a claim behind a word for its verdict: that of `words`, which are named as the verdicts
    with "_" for " ", else that of KINDS."""

    def answer() -> Finding:
        result, line = shipped_result(CLAIMS[key]), claim_line(key)
        kind = "undecided" if result is None else result.verdict(CLAIMS[key]).kind
        word = words.get(kind.replace(" ", "_"), KINDS[kind])
        return Finding(f"{word}. {line.finding}", line.to)

    return answer


# Answers that were measured otherwise.


def _broken() -> Finding:
    it = depth("post")
    assert it is not None
    is_broken = not any(deepest(key, "post") for key in ("torch", MAP))
    return Finding(f"{'Here it is' if is_broken else 'No, it trains here'}. {it.text}.", it.to)


def _depths() -> Iterator[Finding]:
    if finding := depth("pre"):
        yield Finding(f"{SCHEMES.label('pre')}. {finding.text}", finding.to)


def _warm() -> Finding:
    it = measured(WARM, "pre", warmup=0)
    assert it is not None
    word = "No" if len(it.trained) == len(it.rates) else "At some rates"
    return Finding(
        f"{word}: without one, {it.config.depth} blocks of Pre-LN train at {len(it.trained)} of "
        f"{tried(it.rates)} ({conditions(WARM)}).",
        map_address(WARM),
    )


def _warm_ups() -> Iterator[Finding]:
    for scheme in ("pre", "post"):
        if finding := warm_up(scheme):
            yield Finding(f"{SCHEMES.label(scheme)}, {finding.text}", finding.to)


def _faster() -> Finding:
    measurement = stored_results.shipped()
    row = measurement.row(LIBRARY, "step")
    word = "No difference measured"
    if measurement.differs(row):
        word = "No" if row.ratio.median > 1 else "Yes"
    return Finding(
        f"{word}. {step_time(measurement)} That is with PyTorch's norms on one CPU; no GPU was measured.",
        COST,
    )


def _speed() -> Iterator[Finding]:
    yield Finding(verdict(stored_results.shipped()), COST)


def _norm_not_placement() -> Finding:
    models = [model for model in census().models if model.norm == "rmsnorm" and model.placement]
    counts = Counter(SCHEMES.label(str(model.placement)) for model in models)
    said = listed([f"{label} ({n})" for label, n in counts.most_common(3)])
    return Finding(
        "No: RMSNorm is a norm, which says what is computed; a placement says where in a block it stands. "
        f"In the census RMSNorm stands in {len(counts)} placements, most often in {said}.",
        CENSUS,
    )


def _batch() -> Iterator[Finding]:
    yield Finding(NORMS["batchnorm"].warning.removesuffix("."), "catalogue")


def _uses() -> Finding:
    models = census().models
    pre, word = (
        sum(model.placement == "pre" for model in models),
        "stacks of blocks of language models",
    )
    return Finding(
        f"{'Yes' if pre == len(models) else 'No'}: {pre} of {len(models)} {word} in the census do.",
        CENSUS,
    )


def _census() -> Iterator[Finding]:
    counts = Counter(model.words[0] for model in census().models)
    said = ", ".join(f"{n} {label}" for label, n in counts.most_common())
    yield Finding(
        f"Of {len(census().models)} stacks of blocks of language models in transformers "
        f"{census().transformers}: {said}",
        CENSUS,
    )


DEEP = 16
"""Blocks of the models whose early and late gradients are compared."""


def _ends() -> Finding:
    """Where the gradient of the stream is larger after training, by placement."""
    parts = []
    for scheme in ("pre", "post"):
        it = measured(MAP, scheme, depth=DEEP, warmup=0)
        assert it is not None
        gain = it.gain(1)
        where = "early" if gain.low > 1 else "late" if gain.high < 1 else "not decided"
        parts.append(
            f"{where} in {SCHEMES.label(scheme)}, whose gradient at the embedding is {gain.median:.2g} "
            f"({gain.low:.2g} to {gain.high:.2g}) times that after the last block"
            + ("" if it.trained else f", and which trained at none of {tried(it.rates)}")
        )
    said = "; ".join(parts)
    return Finding(
        f"{said[0].upper()}{said[1:]}. Medians and ranges of the seeds after the last step, each at its best "
        f"rate: {DEEP} blocks, {conditions(MAP)}.",
        map_address(MAP),
    )


def _early() -> Iterator[Finding]:
    for scheme in ("pre", "post"):
        it = measured(MAP, scheme, depth=DEEP, warmup=0)
        assert it is not None
        found = gradient(it)
        yield Finding(f"{SCHEMES.label(scheme)}, {DEEP} blocks: {found.text}", found.to)


def _carries() -> Finding:
    best = [
        (blocks, it.best)
        for blocks in depths()
        if (it := measured(map_of(blocks), "pre", depth=blocks, warmup=0))
        and it.compared("trained and settled")
    ]
    (shallow, first), (deep, last) = best[0], best[-1]
    return Finding(
        "Not measured for width, steps or data: every run of the guide has width "
        f"{standard(MAP).grid.base.width}. Of the rates {listed([f'{lr:g}' for lr in GUESSES])} the best one "
        f"of Pre-LN is {first:g} with {shallow} blocks and {last:g} with {deep} ({conditions(MAP)}).",
        map_address(MAP),
    )


@cache
def _hero() -> tuple[Recording, ...]:
    """The shipped runs of the first preset, one a lane."""
    wanted = [lane.key for lane in PRESETS["hero"].lanes()]
    files = sorted((shipped("assets") / "runs").glob("hero-*.npz"))
    recordings = {recording.config.key: recording for path in files for recording in load(path)}
    return tuple(recordings[key] for key in wanted if key in recordings)


def _unrolled() -> Finding:
    """The sum and the product, and what became of both in the runs of the first preset."""
    lanes, parts = PRESETS["hero"].lanes(), []
    for recording in _hero():
        grad, steps, row = recording.values("grad_hidden"), recording.steps.layer_steps, 31
        parts.append(
            f"in {SCHEMES.label(recording.config.scheme)} by {grad[0, 0] / grad[0, -1]:.2g} at step 0 and "
            f"{grad[row, 0] / grad[row, -1]:.2g} at step {steps[row]}"
        )
    return Finding(
        "Pre-LN's stream is a sum, so one path of the gradient passes no norm; in Post-LN every path passes "
        f"every norm. In the first preset the gradient is multiplied on its way {listed(parts)}.",
        duel_address(lanes, probe="grad_hidden"),
    )


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


def _sum_and_product() -> tuple[tuple[str, str], ...]:
    """The stream as a sum and as a product, and the gradient path of one sublayer."""
    whole = (
        ("pre", r"x_{2L} = x_0 + \sum_{l=1}^{2L} f_l(\mathrm{LN}(x_{l-1}))"),
        ("post", r"\frac{\partial x_{2L}}{\partial x_0} = \prod_{l=1}^{2L} J_l"),
    )
    paths = ((key, latex) for key, _ in whole for _, latex in gradient_path(key, 1))
    return tuple((SCHEMES.label(key), latex) for key, latex in (*whole, *paths))


SYMBOLS = (
    r"$L$ blocks of two sublayers; $x_l$ is the stream after sublayer $l$, $x_0$ the embedding, $f_l$ the "
    r"branch (attention or FFN), $\mathrm{LN}$ the norm, and $J_l = \partial x_l / \partial x_{l-1}$ the "
    "Jacobian of a sublayer with its norm, the later ones on the left. In the lines of one sublayer $x$ is "
    r"its input, $x^{+}$ its output, $J_F$ the branch's Jacobian, $J_{\mathrm{N}}$ the norm's, $I$ the "
    "identity."
)


def _matters() -> Finding:
    """Whether some placements of the map with RMSNorm and QK-norm train where others do not."""
    blocks = standard(MODERN).grid.base.depth
    it = ordered(MODERN, blocks, is_tuned=True)
    fail = [SCHEMES.label(one.scheme) for one in it.behind if not one.trained]
    tried_at = tried(it.tied[0].rates)
    word = (
        f"Yes, for whether it trains: {listed(fail)} trained at none of {tried_at}"
        if fail
        else f"Less: each trained at some of {tried_at}"
    )
    among = listed([SCHEMES.label(one.scheme) for one in it.tied])
    more = f"; between {among}, each at its best rate, no difference in loss was measured"
    return Finding(
        f"{word}{more * (len(it.tied) > 1)}. That is with {setting(MODERN, blocks)}. No other initialisation "
        f"was tried{_elsewhere([one.scheme for one in it.behind if not one.trained])}.",
        map_address(MODERN),
    )


def _elsewhere(schemes: Sequence[str]) -> str:
    """With how many blocks these train with another norm and initialisation, as a clause."""
    found = [(SCHEMES.label(scheme), deepest("torch", scheme)) for scheme in schemes]
    words = listed([f"{label} trains with up to {most} blocks" for label, most in found if most])
    return f"; with {conditions('torch')}, {words}" if words else ""


def _modern() -> Iterator[Finding]:
    """What separates the placements of the map that has both."""
    blocks = standard(MODERN).grid.base.depth
    for is_tuned, how in ((False, "not tuned"), (True, "tuned")):
        it = ordered(MODERN, blocks, is_tuned)
        words = " ".join(filter(None, (f"{it.headline}.", it.others, it.differs)))
        rates = listed([f"{lr:g}" for lr in GUESSES])
        yield Finding(
            f"{blocks} blocks, rate {how}, compared at {rates}. {words}", map_address(MODERN)
        )


def _normless() -> Finding:
    most, pre = (deepest(MAP, scheme) or 0 for scheme in ("none", "pre"))
    last = max(by_depth(MAP, "none"))
    word = "No" if not most else "Yes" if most == last else "Only in shallow models"
    return Finding(
        f"{word}: without a norm {reach(MAP, 'none')}; with Pre-LN up to {pre} "
        f"({conditions(MAP).replace('LayerNorm', 'LayerNorm in Pre-LN')}).",
        map_address(MAP),
    )


CONFUSIONS: Registry[Confusion] = Registry(
    "question",
    (
        Confusion("post", "Is Post-LN broken?", _broken, ("E1", "E2", "E9", "C9"), _depths),
        Confusion("warmup", "Does Pre-LN need a warm-up?", _warm, ("C5", "E1", "E14", "C49"), _warm_ups),
        Confusion("placement", "Is RMSNorm a placement?", _norm_not_placement, ("C21",)),
        Confusion(
            "rmsnorm", "Does RMSNorm train better than LayerNorm?",
            _by("E11", holds="No", holds_in_part="Not measurably", contradicted="Not equally"),
            ("E11", "E12", "C21"),
        ),
        Confusion("speed", "Is RMSNorm faster than LayerNorm?", _faster, ("C18",), _speed),
        Confusion(
            "batchnorm", "Does BatchNorm do as well as LayerNorm?",
            _by("E21", holds="Not in small batches", contradicted="Yes"), ("E21", "C42", "C43"), _batch,
        ),
        Confusion(
            "qk", "Does QK-norm make the learning rate matter less?", _by("C14"), ("C14", "C15", "C17")
        ),
        Confusion(
            "final", "Why a final norm?",
            _by("C20", holds="It keeps the first loss low", contradicted="It was not needed here"),
            ("C20", "E6", "E25"),
        ),
        Confusion(
            "unrolled", "Why does the gradient reach Pre-LN's first block and not Post-LN's?", _unrolled,
            ("E8", "C4", "C7"), _gains, _sum_and_product, SYMBOLS,
        ),
        Confusion(
            "early", "Are gradients larger in early or in late blocks?", _ends, ("C3", "C4", "E16"), _early
        ),
        Confusion("equal", "Is Pre-LN's gradient the same in every block?", _by("C3"), ("C3", "C1")),
        Confusion("quality", "Does Post-LN end better once it is tuned?", _by("E7"), ("E7",)),
        Confusion(
            "modern", "Does the placement still matter with RMSNorm and QK-norm?", _matters,
            ("C14", "C17"), _modern,
        ),
        Confusion("sandwich", "Is a norm on both sides better than one?", _by("C16"), ("C16", "E13")),
        Confusion("none", "Does it train without any norm?", _normless, ("E10", "C25", "C19")),
        Confusion("carry", "Does a learning rate carry over to other sizes?", _carries, ("E24", "X3")),
        Confusion("users", "Do all language models use Pre-LN?", _uses, ("M1",), _census),
    ),
)  # fmt: skip
