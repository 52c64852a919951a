"""Answers -> the placements to look at, each with its reason and what was measured of it.

The rule, for the placements of the map of the depth that is nearest to the answers. They are compared at the
learning rates GUESSES, and only at those at which they settled: what still fell when it ended says nothing.
Where the rate is tuned, each has the loss at its best rate. Where it is not, those that fail at the fewest
rates come first, with their mean loss over the rates at which all of them settled. No difference was
measured from the lowest loss where it is below EQUAL. Where a larger one is not told apart by the seeds
(`compare`), that is said. All of those are shown, and the placement that most models use. For an existing
model its own comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ...catalog import INITS, NORMS, SCHEMES
from ...catalog.models import Model, census
from ...formats import listed
from ...limits import MAX_LANES
from ...runs.statistics import Comparison, compare, interval
from ...studies.claims.records.quality import EQUAL, SMALL
from ...studies.maps.link import standard
from .answers import GUESSES, MODERN, Answers, map_of, measured_at
from .facts import (
    SETTLED,
    Finding,
    Mark,
    Measured,
    duel_address,
    measured,
    norms,
    norms_a_block,
    setting,
    users,
)
from .properties import ClaimLine, claims_about, cost, gradient, loss, rates, stream, used


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
        """Each rate that was tried, and what came of it."""
        if self.measured is None:
            return ()
        return tuple((f"{lr:g}", word) for lr, word in self.measured.marks.items())


@dataclass(frozen=True)
class Guide:
    """What the page answers.

    scope      the models, rates and losses that it is about, in a few words
    headline   the answer in a few words, `choice` which of its placements have the fewest norms, `differs`
               what they differ in at higher rates, if anything (for an existing model the answer from
               scratch), `why` the numbers, `others` what the rest lack
    limits     the models in all their settings, and what was not measured
    duel       address of the duel of the picks at one learning rate; empty with fewer than two
    compares   what that duel compares, in a few words
    """

    scope: str
    headline: str
    choice: str
    differs: str
    why: str
    others: str
    limits: tuple[str, ...]
    picks: tuple[Pick, ...]
    duel: str
    compares: str


def guide(answers: Answers) -> Guide:
    """The answer of the guide."""
    order = ranked(answers)
    found = _headline(order, answers)
    own = of_model(answers.model) if answers.start == "existing" else None
    first = [own.placement] if own and own.placement else []
    able = [
        candidate.scheme
        for candidate in (*order.tied, *order.behind)
        if candidate.compared("trained and settled")
    ]
    most = max(able, key=lambda scheme: len(users(scheme)), default="")
    near = (candidate.scheme for candidate in (*order.tied, *order.unclear))
    chosen = dict.fromkeys([*first, *near, most])
    picks = tuple(_pick(scheme, answers, order, most, own) for scheme in filter(None, chosen))
    shown_in_duel = [p for p in picks if p.measured][:MAX_LANES]
    if own is not None:
        (headline, why), choice, others = _keep(own), "", ""
        differs = f"Trained from scratch: {found[0].lower()}{found[1:]}."
    else:
        headline, choice, why = found, order.choice, _why(order)
        differs, others = order.differs, order.others
    return Guide(
        scope(answers), headline, choice, differs, why, others, tuple(_limits(answers, own)), picks,
        _duel([p.measured for p in shown_in_duel if p.measured]),
        listed([p.label for p in shown_in_duel]),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Order:
    """What separates the placements of a map at one depth.

    rates    where the rate is not tuned, the rates over which losses are averaged; empty where it is
    tied     the placements with no measured difference from the lowest loss, the most used first
    behind   the others, each with what separates it from the lowest loss
    unclear  those of them that the seeds do not tell apart from it
    """

    rates: tuple[float, ...]
    tied: tuple[Measured, ...]
    behind: Mapping[Measured, str]
    unclear: tuple[Measured, ...]

    @property
    def headline(self) -> str:
        """The answer in a few words."""
        names = [SCHEMES.label(candidate.scheme) for candidate in self.tied]
        if not names:
            return "None of them trained and settled at this size"
        unclear = [SCHEMES.label(candidate.scheme) for candidate in self.unclear]
        more = f"; not told apart by these seeds: {listed(unclear)}" if unclear else ""
        if len(names) == 1:
            return f"Lowest loss at this size: {names[0]}{more}"
        return f"No difference in training loss measured at this size: {listed(names)}{more}"

    @property
    def choice(self) -> str:
        """Which of several `tied` have the fewest norms, in a sentence; "" for one."""
        if len(self.tied) < 2:
            return ""
        names = listed([SCHEMES.label(it.scheme) for it in self.tied])
        free = f"These losses leave the choice between {names if self.unclear else 'them'} free"
        norms = {SCHEMES.label(it.scheme): norms_a_block(it.scheme) for it in self.tied}
        fewest = min(norms.values())
        fewer = [name for name, n in norms.items() if n == fewest]
        if len(fewer) == len(norms):
            return f"{free}, and each has {fewest} norms a block."
        have = "have" if len(fewer) > 1 else "has"
        return f"{free}; {listed(fewer)} {have} the fewest norms, {fewest} a block."

    @property
    def differs(self) -> str:
        """In what `tied` differ at rates above the best one of each, in a sentence; "" if in nothing."""
        return _differs(self.tied)

    @property
    def others(self) -> str:
        """What the placements behind lack, in a sentence; "" where there are none."""
        groups: dict[str, list[str]] = defaultdict(list)
        for candidate, what in self.behind.items():
            groups[what].append(SCHEMES.label(candidate.scheme))
        parts = "; ".join(f"{listed(names)}: {what}" for what, names in groups.items())
        return f"{parts}." if parts else ""


def ranked(answers: Answers) -> Order:
    """The placements that the guide measured at the depth that is nearest to the answers, by the rule."""
    depth = measured_at(answers)
    return ordered(map_of(depth), depth, answers.tuned == "yes")


def ordered(key: str, depth: int, is_tuned: bool) -> Order:
    """The placements of a map at one depth, by the rule."""
    candidates = [measured(key, scheme, depth=depth, warmup=0) for scheme in _schemes(key)]
    tried = [candidate for candidate in candidates if candidate is not None]
    able = [candidate for candidate in tried if candidate.compared("trained and settled")]
    over: tuple[float, ...] = ()
    if able and not is_tuned:
        fewest = min(len(candidate.compared("did not train")) for candidate in able)
        able = [
            candidate for candidate in able if len(candidate.compared("did not train")) == fewest
        ]
        over = tuple(
            lr for lr in GUESSES if all(candidate.marks[lr] in SETTLED for candidate in able)
        )
    able.sort(key=lambda candidate: fmean(score(candidate, over)))
    gaps = {candidate: compare(score(candidate, over), score(able[0], over)) for candidate in able}
    tied = [it for it in able if gaps[it].difference < EQUAL]
    unclear = tuple(it for it in able if it not in tied and not gaps[it].differs)
    tied.sort(key=lambda candidate: -len(users(candidate.scheme)))

    def lack(candidate: Measured) -> str:
        if candidate in gaps:
            words = f"{_gap(gaps[candidate])} nats above {SCHEMES.label(able[0].scheme)}"
            return f"{words}, not told apart" if candidate in unclear else words
        if candidate.compared("trained and settled"):
            return f"did not train at {_at(candidate.compared('did not train'))}"
        return f"trained and settled at none of {_at(GUESSES)}"

    behind = {it: lack(it) for it in tried if it not in tied}
    return Order(over, tuple(tied), behind, unclear)


def _schemes(key: str) -> tuple[str, ...]:
    """The placements of a map."""
    axis = standard(key).grid.axis("scheme")
    assert axis is not None
    return axis.values


def _gap(comparison: Comparison) -> str:
    """ "0.031 (0.025 to 0.037)": a mean difference and its interval."""
    return f"{comparison.difference:.3f} ({comparison.low:.3f} to {comparison.high:.3f})"


def score(candidate: Measured, over: Sequence[float]) -> list[float]:
    """The number of each seed by which placements are compared, in nats: the mean loss over some rates;
    without them the loss at the best one."""
    return candidate.means(over) if over else candidate.losses


def of_model(name: str) -> Model | None:
    """The first stack of a model in the census whose placement is known, else its first."""
    stacks = [model for model in census().models if model.model == name]
    return next((model for model in stacks if model.placement), next(iter(stacks), None))


# Words.


def _headline(order: Order, answers: Answers) -> str:
    """The order's headline, which names the depth where it is not the one that was asked for."""
    words = order.headline
    if answers.depth != "more":
        return words
    return words.replace("at this size", f"at {measured_at(answers)} blocks")


def _keep(own: Model) -> tuple[str, str]:
    """The headline for an existing model, and why."""
    if own.placement is None:
        return "Keep its placement", f"What {own.model} has could not be told: {own.open}."
    return f"Keep {SCHEMES.label(own.placement)}", (
        f"It is what {own.model} computes, as the census says. Another placement is another "
        "function of the same weights; to move the norm of a trained model was not measured."
    )


def _differs(tied: Sequence[Measured]) -> str:
    """Which tied placements trained and settled and which did not train at rates above the best one of each,
    in a sentence; "" if they do not differ. What still fell is left out: it says nothing."""
    if len(tied) < 2:
        return ""
    best = max(candidate.best for candidate in tied)
    above = [
        lr
        for lr in tied[0].rates
        if lr > best and len({candidate.marks[lr] for candidate in tied} & {*SETTLED}) > 1
    ]
    groups: dict[str, list[str]] = defaultdict(list)
    for candidate in tied:
        at = {word: [lr for lr in above if candidate.marks[lr] == word] for word in SETTLED}
        if what := [f"{word} at {_at(at[word])}" for word in SETTLED if at[word]]:
            groups[listed(what)].append(SCHEMES.label(candidate.scheme))
    parts = "; ".join(f"{listed(names)} {what}" for what, names in groups.items())
    return f"Above their best rates they differ: {parts}." if above else ""


def _why(order: Order) -> str:
    if not order.tied:
        return "No placement trained and settled at any of these rates."
    means = listed([f"{SCHEMES.label(it.scheme)} {_mean(it, order.rates)}" for it in order.tied])
    if order.rates:
        of = len(GUESSES)
        trained = of - len(order.tied[0].compared("did not train"))
        mean = "mean loss over those" if len(order.rates) > 1 else "loss at the only one"
        sentence = (
            f"Without tuning: each trained at {trained} of the {of} rates; {mean} at which all of them "
            f"settled ({_at(order.rates)}), in nats: {means}."
        )
    else:
        sentence = (
            f"Tuned: the loss at the best rate of each, chosen on the same seeds, in nats: {means}."
        )
    sentence += f" In brackets: 95 % intervals over {len(order.tied[0].losses)} seeds."
    if len(order.tied) > 1:
        sentence += (
            f" No difference: below {EQUAL:g} nats. That limit is this page's own; claims have theirs, some "
            f"{SMALL:g}."
        )
    if order.unclear:
        sentence += " Not told apart: the interval of the difference over paired seeds holds zero."
    return sentence


def _mean(candidate: Measured, over: Sequence[float]) -> str:
    """ "1.240 (1.215 to 1.265)": the mean over the seeds, and its interval."""
    mean = interval(score(candidate, over))
    assert mean is not None  # a map has several seeds, and a loss is at most chance
    return f"{mean.mean:.3f} ({mean.low:.3f} to {mean.high:.3f})"


def _at(them: Iterable[float]) -> str:
    return listed([f"{lr:g}" for lr in them])


def _pick(scheme: str, answers: Answers, order: Order, most: str, own: Model | None) -> Pick:
    depth = measured_at(answers)
    candidate = measured(map_of(depth), scheme, depth=depth, warmup=0)
    lines = tuple(
        (label, None if candidate is None else read(candidate))
        for label, read in (
            ("Rates", rates), ("Loss", loss), ("Stream", stream), ("Gradient", gradient)
        )
    )  # fmt: skip
    lines += (("Cost", cost(scheme)), ("Used by", used(scheme)))
    return Pick(
        scheme, _reason(scheme, candidate, order, most, own), lines, claims_about(scheme), candidate
    )


def _reason(
    scheme: str, candidate: Measured | None, order: Order, most: str, own: Model | None
) -> str:
    reasons: list[str] = []
    if own is not None and scheme == own.placement:
        norm = (
            NORMS.label(own.norm)
            if own.norm and own.norm in NORMS
            else "a norm that could not be told"
        )
        reasons.append(f"what {own.model} has, with {norm}")
    if candidate is not None and candidate in order.behind:
        reasons.append(order.behind[candidate])
    elif candidate is not None:
        others = [SCHEMES.label(rival.scheme) for rival in order.tied if rival is not candidate]
        reasons.append(
            f"no difference measured from {listed(others)}" if others else "the lowest loss"
        )
        if order.rates:
            reasons.append(
                f"mean loss {_mean(candidate, order.rates)} nats, in brackets a 95 % interval"
            )
    if scheme == most:
        reasons.append("the most used of these")
    return "; ".join(reasons)


def scope(answers: Answers) -> str:
    """What was measured for the answers, in a few words."""
    depth = measured_at(answers)
    return (
        f"Toy models only: {setting(map_of(depth), depth)}, rates {_at(GUESSES)}, training loss. "
        "Large models were not measured."
    )


def _limits(answers: Answers, own: Model | None) -> list[str]:
    limits, depth = [], measured_at(answers)
    if answers.depth == "more":
        limits.append(f"More than {depth} blocks: not measured. This is for {depth}.")
    new = standard(MODERN).grid.base
    steps = standard(map_of(depth)).grid.base.steps
    limits.append(f"The loss is the mean of the last {steps // 10} steps, each on a new batch.")
    limits.append(
        f"With {NORMS.label(new.norm)} and QK-norm {new.depth} blocks and {INITS.label(new.init)} "
        "initialisation alone were measured."
    )
    limits.append(
        "How to carry a rate over to another size was not measured: a rate here is one of models of this "
        "width and depth, trained for so many steps."
    )
    if answers.precision != "fp32":
        limits.append(
            f"Precision was not measured: every run used fp32, so {answers.precision} is given the same "
            "answer. Each card has the size of the stream."
        )
    if own is not None:
        limits.append("All numbers are of models that were trained from scratch.")
        if own.norm and own.norm in NORMS and own.norm != standard(map_of(depth)).grid.base.norm:
            limits.append(
                f"{own.model} has {NORMS.label(own.norm)}; its numbers here are of models with "
                f"{norms(standard(map_of(depth)).grid.base)}."
            )
    return limits


def _duel(them: Sequence[Measured]) -> str:
    """All picks at the best rate of the first, where each was run at it."""
    if len(them) < 2:
        return ""
    lr = them[0].best
    return duel_address(
        [candidate.rates[lr][0].config for candidate in them if lr in candidate.rates]
    )
