"""Answers -> two or three placements, each with its reason and what was measured of it.

The rule: of the placements of the map that is nearest to the answers, those that train at some rate are
ordered by final loss, over all rates where the rate is not tuned, at the best one where it is. The first
two are shown, and the one that most models use. For an existing model its own placement comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from ..catalog import NORMS, QK_NORMS, SCHEMES
from ..catalog.models import Model, census
from ..config import RunConfig
from ..links import shown
from ..maps.link import standard
from ..runs.statistics import Comparison, compare
from .answers import MODERN, Answers, measured_at
from .facts import Finding, Measured, duel_address, measured, users
from .properties import ClaimLine, claims_about, cost, gradient, loss, rates, stream, used

Mark = Literal["trains", "still falling", "does not train"]


def _mark(it: Measured, lr: float) -> Mark:
    if lr in it.trained:
        return "trains"
    return "still falling" if lr in it.falling else "does not train"


@dataclass(frozen=True)
class Pick:
    """One placement: why it is shown, and lines of a label and a finding; None says "not measured"."""

    scheme: str
    reason: str
    lines: tuple[tuple[str, Finding | None], ...]
    claims: tuple[ClaimLine, ...]
    measured: Measured | None

    @property
    def label(self) -> str:
        """The placement's name."""
        return SCHEMES.label(self.scheme)

    @property
    def marks(self) -> tuple[tuple[str, Mark], ...]:
        """Each rate that was tried, and whether it trains."""
        it = self.measured
        return () if it is None else tuple((f"{lr:g}", _mark(it, lr)) for lr in it.rates)


@dataclass(frozen=True)
class Guide:
    """What the page answers.

    headline   the answer in a few words, and `why` in a sentence
    setting    the models that were trained for it
    caveats    what was not measured
    duel       address of the duel of the picks at one learning rate; empty with fewer than two
    """

    headline: str
    why: str
    picks: tuple[Pick, ...]
    setting: str
    caveats: tuple[str, ...]
    duel: str


def guide(answers: Answers) -> Guide:
    """The answer of the guide."""
    key, depth = measured_at(answers)
    order = ranked(answers)
    own = of_model(answers.model) if answers.start == "existing" else None
    first = [own.placement] if own and own.placement else []
    most = max((it.scheme for it in order), key=lambda scheme: len(users(scheme)), default="")
    chosen = list(dict.fromkeys([*first, *(it.scheme for it in order[: 1 if first else 2]), most]))
    picks = tuple(_pick(scheme, answers, order, most, own) for scheme in filter(None, chosen))
    return Guide(
        *_headline(answers, order, own), picks, setting(key, depth),
        tuple(_caveats(answers, own)), _duel([p.measured for p in picks if p.measured]),
    )  # fmt: skip


def ranked(answers: Answers) -> list[Measured]:
    """The placements that train at some rate, the lowest loss first."""
    key, depth = measured_at(answers)
    axis = standard(key).grid.axis("scheme")
    assert axis is not None
    found = [measured(key, scheme, depth=depth, warmup=0) for scheme in axis.values]
    able = [it for it in found if it is not None and it.trained]
    return sorted(able, key=lambda it: median(score(it, answers)))


def score(it: Measured, answers: Answers) -> list[float]:
    """The number of each seed that orders the placements, in nats."""
    return it.losses if answers.tuned == "yes" else it.means


def compared(first: Measured, second: Measured, answers: Answers) -> Comparison:
    """Two placements by that number, seed by seed."""
    return compare(score(first, answers), score(second, answers))


def of_model(name: str) -> Model | None:
    """The first stack of a model in the census whose placement is known, else its first."""
    found = [model for model in census().models if model.model == name]
    return next((model for model in found if model.placement), next(iter(found), None))


def _headline(answers: Answers, order: Sequence[Measured], own: Model | None) -> tuple[str, str]:
    if own is not None:
        if own.placement is None:
            return "Keep its placement", f"What {own.model} has could not be told: {own.open}."
        words = f"Keep {SCHEMES.label(own.placement)}"
        return words, (
            f"It is what {own.model} computes, as the census read its code. Another placement is another "
            "function of the same weights; to move the norm of a trained model was not measured."
        )
    if not order:
        return "None of them", "No placement trains at any rate of this map."
    names = [SCHEMES.label(it.scheme) for it in order[:2]]
    what = f"Of {len(order)} placements that train here, the lowest {_what(answers)}"
    if len(order) > 1 and not compared(order[0], order[1], answers).differs:
        return " or ".join(names), f"{what}; between the two no difference was found."
    return names[0], f"{what}."


def _what(answers: Answers) -> str:
    return "loss at its best rate" if answers.tuned == "yes" else "mean loss over all rates tried"


def _pick(
    scheme: str, answers: Answers, order: Sequence[Measured], most: str, own: Model | None
) -> Pick:
    key, depth = measured_at(answers)
    it = measured(key, scheme, depth=depth, warmup=0)
    lines = tuple(
        (label, None if it is None else read(it))
        for label, read in (
            ("Trains at", rates), ("Loss", loss), ("Stream", stream), ("Gradient", gradient)
        )
    )  # fmt: skip
    lines += (("Cost", cost(scheme)), ("Used by", used(scheme)))
    reason = _reason(scheme, it, answers, order, most, own)
    return Pick(scheme, reason, lines, claims_about(scheme), it)


def _reason(
    scheme: str,
    it: Measured | None,
    answers: Answers,
    order: Sequence[Measured],
    most: str,
    own: Model | None,
) -> str:
    found = []
    if own is not None and scheme == own.placement:
        norm = (
            NORMS.label(own.norm)
            if own.norm and own.norm in NORMS
            else "a norm that could not be told"
        )
        found.append(f"what {own.model} has, with {norm}")
    place = next((i for i, one in enumerate(order) if one.scheme == scheme), None)
    if place is not None and it is not None:
        number = median(score(it, answers))
        found.append(f"{_what(answers)}: {number:.2f} nats, rank {place + 1} of {len(order)}")
        if place:
            found.append(_differs(compared(it, order[0], answers), order[0].scheme))
    elif it is not None:
        found.append("trains at none of the rates tried")
    if scheme == most:
        found.append("the most used of these")
    return "; ".join(found)


def _differs(it: Comparison, first: str) -> str:
    label = SCHEMES.label(first)
    if not it.differs:
        return f"no difference from {label} found with {it.pairs} seeds"
    return f"{abs(it.difference):.2f} nats {'above' if it.difference > 0 else 'below'} {label}"


def setting(key: str, depth: int) -> str:
    """The models of a map at a depth, in a sentence."""
    base = standard(key).grid.base
    qk = (
        "no QK-norm" if base.qk_norm == "off" else f"QK-norm {QK_NORMS.label(base.qk_norm).lower()}"
    )
    return (
        f"Measured with {depth} blocks of width {base.width}, {NORMS.label(base.norm)}, {qk}, "
        f"{shown('init', base.init)} initialisation, {shown('task', base.task)}, {base.steps} steps without "
        f"warm-up, {standard(key).grid.seeds} seeds."
    )


def _caveats(answers: Answers, own: Model | None) -> list[str]:
    found = []
    _, depth = measured_at(answers)
    if answers.depth == "more":
        found.append(f"No map goes beyond {depth} blocks: what follows is for {depth}.")
    width = RunConfig().width
    found.append(
        f"These models are {width} wide and train for seconds. Whether the order carries over to large "
        "models was not measured."
    )
    if answers.precision != "fp32":
        found.append(
            f"Precision was not measured: every run here used fp32, and {answers.precision} changes nothing "
            "in this answer. What was measured is the size of the stream, in each card."
        )
    if own is not None:
        found.append("All numbers are of models that were trained from scratch.")
    if measured_at(answers)[0] != MODERN:
        base = standard(MODERN).grid.base
        found.append(
            f"With {NORMS.label(base.norm)} and QK-norm only {base.depth} blocks were run."
        )
    return found


def _duel(them: Sequence[Measured]) -> str:
    """All picks at the best rate of the first, where each was run at it."""
    if len(them) < 2:
        return ""
    lr = them[0].best
    return duel_address([it.rates[lr][0].config for it in them if lr in it.rates])
