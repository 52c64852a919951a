"""How often verdicts are wrong: on simulated curves of known truth, and on shipped runs that are cut short;
and how often a run that is at chance leaves it later.

A word on a simulated curve is wrong by its mean losses without noise, mu, at all steps. `final` is the mean
of mu over the last tenth of the steps. Chance, the floor and the bands are those of `normviz.runs.verdict`.

solved since s  final, or the mean of mu from s on, is above the band, or the first 20 steps from s are
                above twice the band
at chance since s   final, or the mean of mu from s on, is outside of 3 % of chance; or 20 steps in a row
                from s on are outside of 6 %; or the second half of the steps from s on differs from the
                first by more than 2 % of chance
learned         final is less than 3 % below chance; with "learned" it is less than half of the way to the
                floor, with "learned little" half or more
above           final is less than 3 % above chance
still falling   the last third of the steps is not lower than the third before it by 0.02 % of chance
any             the step is none of the run's

"not settled" and "short" say nothing that could be wrong. The last column counts the first.

For a shipped run that is cut after n steps, h = max(10, n // 5) steps before and after tell what was so. The
mean of the 2h steps around the middle of the last tenth is `final`. A word is wrong where it contradicts
that by more than CERTAIN standard errors. Two words are about more than `final`:

at chance since s   wrong if the mean of the losses from s to the cut is outside of 3 % of chance by more
                than the error; or if the h steps before the last h, the last h, and the h after the cut fall
                by 4 % of chance in all, by more than the error, and a quarter of that came before the cut
still falling   wrong if the h steps after the cut are higher than the h before it by more than the error

A loss that falls only after the cut was at chance until then. A second table counts these: of the cuts that
are at chance, and after which 1, 2 or 4 times as many steps follow at the same constant rate, the share whose
loss is later, for LEFT steps in a row on average, surely more than 3 % below chance.

The noise of a simulated curve is that of shipped runs at the same height: blocks of 25 successive residuals
of a parabola through the second half of a run, with their size, correlation and outliers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..observed import configured
from ..runs import Recording
from ..runs.archive import load
from ..runs.shipped import files
from ..runs.statistics import wilson
from ..runs.verdict import ENOUGH, HALF, NEAR_CHANCE, PLATEAUS, SOLVED, STILL, Verdict, judge

Floats = NDArray[np.float64]
Rule = Callable[[Floats, int, float, float | None], Verdict]
CURVES = 300
"""Simulated curves of each kind."""
SHORTEST, LONGEST = ENOUGH, 1000
BLOCK = 25
STRIDE = 1.15
"""Each cut of a run is so many times as long as the one before."""
CERTAIN = 2.576
LEFT = 20
HORIZONS = (1, 2, 4)
"""A run that is at chance is followed for so many times as many steps."""


@dataclass(frozen=True)
class Curve:
    """Losses to judge, in nats."""

    losses: Floats
    chance: float
    floor: float | None

    @property
    def bar(self) -> float:
        """The highest loss of a solved task."""
        return -math.inf if self.floor is None else self.floor + SOLVED * self.way

    @property
    def way(self) -> float:
        """From chance to the floor; NaN without a floor."""
        return math.nan if self.floor is None else self.chance - self.floor

    @property
    def near(self) -> float:
        """Half of the width of the band at chance."""
        return NEAR_CHANCE * self.chance

    def is_wrong(self, verdict: Verdict) -> bool:
        """Whether the word says what is not so."""
        raise NotImplementedError

    def _is_off(self, word: str, level: float, error: float = 0.0) -> bool:
        """Whether the loss at the end lies on the other side of what a word says, by more than an error."""
        half = self.chance - HALF * self.way
        match word:
            case "solved":
                return level - error > self.bar
            case "at chance" | "back at chance":
                return abs(level - self.chance) - error > self.near
            case "above":
                return level + error <= self.chance + self.near
            case "learned" if self.floor is not None and level - error > half:
                return True
            case "learned little" if self.floor is not None and level + error <= half:
                return True
            case "learned" | "learned little" | "learned in part":
                return level - error >= self.chance - self.near
        return False


@dataclass(frozen=True)
class Simulated(Curve):
    """A curve with the mean loss of each step, without noise."""

    mu: Floats

    def is_wrong(self, verdict: Verdict) -> bool:
        """By the mean losses that the curve was made from."""
        word, n, since = verdict.kind, len(self.mu), verdict.step
        if since is not None and not 0 <= since < n:
            return True
        if self._is_off(word, float(self.mu[-max(1, n // 10) :].mean())):
            return True
        if word == "solved":
            first = float(self.mu[since:][:ENOUGH].mean())
            return first > self.bar + SOLVED * self.way or float(self.mu[since:].mean()) > self.bar
        if word in PLATEAUS:
            rest = self.mu[since:]
            parts = np.convolve(rest, np.full(ENOUGH, 1 / ENOUGH), "valid")
            half = len(rest) // 2
            moved = abs(float(rest[:half].mean() - rest[-half:].mean()))
            return (
                len(rest) < ENOUGH
                or abs(float(rest.mean()) - self.chance) > self.near
                or bool((np.abs(parts - self.chance) > 2 * self.near).any())
                or moved > STILL * self.chance
            )
        if word == "still falling":
            third = n // 3  # two of them are the longest tail
            fall = float(self.mu[-2 * third : -third].mean() - self.mu[-third:].mean())
            return fall < STILL / 100 * self.chance
        return False


@dataclass(frozen=True)
class Cut(Curve):
    """The first steps of a run, and the losses of the whole run."""

    whole: Floats

    def is_wrong(self, verdict: Verdict) -> bool:
        """By the steps of the whole run around the cut."""
        word, n, since = verdict.kind, len(self.losses), verdict.step
        if since is not None and not 0 <= since < n:
            return True
        h = self.reach(n)
        middle = n - n // 20
        around = self.losses[since:] if word in PLATEAUS else self.whole[middle - h : middle + h]
        error = CERTAIN * _noise(self.whole[n - h : n + h])
        if self._is_off(word, float(around.mean()), error / math.sqrt(len(around))):
            return True
        before, last, after = (
            float(self.whole[start : start + h].mean()) for start in (n - 2 * h, n - h, n)
        )
        error *= math.sqrt(2 / h)
        if word in PLATEAUS:
            fell = before - after
            return fell > max(2 * STILL * self.chance, error) and before - last >= fell / 4
        return word == "still falling" and after - last > error

    def has_left(self, times: int) -> bool | None:
        """Whether the loss falls below chance within so many times as many steps after the cut; None where
        the run has fewer."""
        n = len(self.losses)
        later = self.whole[n : n * (1 + times)]
        if len(later) < n * times:
            return None
        means = np.convolve(later, np.full(LEFT, 1 / LEFT), "valid")
        error = CERTAIN * _noise(later) / math.sqrt(LEFT)
        return bool(means.min() + error < self.chance - self.near)

    @staticmethod
    def reach(n: int) -> int:
        """Steps before and after a cut that say what was so."""
        return max(10, n // 5)


@dataclass
class Count:
    """How often each word is said of curves, and how often it is wrong."""

    uses: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, curves: Iterable[Curve], rule: Rule) -> int:
        """Judge curves by a rule. The number of wrong words among them."""
        wrong = 0
        for curve in curves:
            verdict = rule(curve.losses, len(curve.losses), curve.chance, curve.floor)
            is_wrong = curve.is_wrong(verdict)
            self.uses[verdict.kind] += 1
            self.wrong[verdict.kind] += is_wrong
            wrong += is_wrong
        return wrong

    def row(self, name: str) -> str:
        """A line of the table."""
        n, wrong = self.uses.total(), self.wrong.total()
        words = n - self.uses["not settled"]
        low, high = wilson(wrong, words)
        shares = "  ".join(
            f"{self.uses[word] / n:7.1%}" for word in ("still falling", "not settled")
        )
        percent = wrong / words if words else 0.0
        return f"{name:28} {n:7,} {words:7,} {wrong:6} {percent:8.2%}  {low:6.2%} to {high:6.2%}  {shares}"

    def words(self) -> str:
        """The wrong words with how often each was said."""
        wrong = (+self.wrong).most_common()
        return ", ".join(f"{word} {n} of {self.uses[word]:,}" for word, n in wrong) or "none"


HEAD = (
    f"{'':28} {'curves':>7} {'words':>7} {'wrong':>6} {'':8}  {'95 % interval':>16}  "
    f"{'falling':>7}  not settled"
)


def measure(rule: Rule = judge) -> str:
    """A table of the wrong words, on simulated curves and on shipped runs cut short."""
    runs = list(shipped_runs())
    noise, every, real = Noise(runs), Count(), Count()
    lines = [HEAD]
    for name in KINDS:
        kind_count = Count()
        kind_count.add(simulate(name, noise, CURVES), rule)
        every.uses += kind_count.uses
        every.wrong += kind_count.wrong
        lines.append(kind_count.row(name))
    spoiled = sum(real.add(cuts(run), rule) > 0 for run in runs)
    low, high = wilson(spoiled, len(runs))
    return "\n".join(
        (
            *lines,
            every.row("all simulated"),
            real.row("shipped runs, cut"),
            f"{spoiled} of {len(runs):,} shipped runs have a wrong word at a cut ({low:.2%} to {high:.2%}). "
            "Cuts of one run are not independent: the interval in the table is too narrow.",
            *(f"wrong words, {name}: {count.words()}" for name, count in
              (("simulated", every), ("shipped", real))),
            *leavers(runs, rule),
        )
    )  # fmt: skip


def leavers(runs: Iterable[Recording], rule: Rule = judge) -> Iterator[str]:
    """How many of the shipped runs that are at chance at a cut leave it later, a line for each horizon."""
    steady = [run for run in runs if configured(run.config).schedule == "constant"]
    plateaus = [
        cut
        for run in steady
        for cut in cuts(run)
        if rule(cut.losses, len(cut.losses), cut.chance, cut.floor).kind in PLATEAUS
    ]
    yield "shipped runs at a constant rate that are at chance at a cut, and leave it"
    for times in HORIZONS:
        known = [left for cut in plateaus if (left := cut.has_left(times)) is not None]
        low, high = wilson(sum(known), len(known))
        yield (
            f"  within {times} x as many steps: {sum(known):,} of {len(known):,} "
            f"({sum(known) / max(1, len(known)):.0%}; {low:.0%} to {high:.0%})"
        )


# Shipped runs.


def shipped_runs() -> Iterator[Recording]:
    """All runs that ship and reached their end, each once: of presets, maps and claims."""
    seen: set[str] = set()
    for path in files("runs", "maps", "claims"):
        for run in load(path):
            if run.status == "finished" and len(run.steps) >= 2 * SHORTEST and run.key not in seen:
                seen.add(run.key)
                yield run


def cuts(run: Recording) -> Iterator[Cut]:
    """The beginnings of a run after which enough steps follow, from SHORTEST on."""
    n = float(SHORTEST)
    while (end := round(n)) + Cut.reach(end) <= len(run.losses):
        yield Cut(run.losses[:end], run.chance, run.floor, run.losses)
        n *= STRIDE


def _noise(losses: Floats) -> float:
    """Standard deviation of the noise of losses, from the differences of neighbours."""
    return float(np.sqrt(np.mean(np.diff(losses) ** 2) / 2))


# Simulated curves.


class Noise:
    """Residuals of shipped runs, by the task and the height of the loss: of at most the second half of the
    longest simulated curve, as more could hold a take-off or a fall back, which is no noise."""

    def __init__(self, runs: Iterable[Recording]) -> None:
        self._blocks: dict[str, list[Floats]] = {}
        self.tasks: dict[bool, tuple[float, float | None]] = {}
        for run in runs:
            self.tasks.setdefault(run.floor is None, (run.chance, run.floor))
            half = run.losses[-min(len(run.losses) // 2, LONGEST // 2) :]
            if len(half) < 3 * BLOCK:
                continue
            at = np.linspace(-1, 1, len(half))
            rest = half - np.polyval(np.polyfit(at, half, 2), at)
            where = self._where(float(half.mean()), run.chance, run.floor)
            scale = half.mean() if where == "above" else 1.0
            pieces = np.split(rest[: len(rest) // BLOCK * BLOCK] / scale, len(rest) // BLOCK)
            self._blocks.setdefault(where, []).extend(pieces)

    @staticmethod
    def _where(level: float, chance: float, floor: float | None) -> str:
        if floor is None:
            return "no floor"
        if level > chance * (1 + NEAR_CHANCE):
            return "above"
        share = (chance - level) / (chance - floor)
        return "chance" if share < 0.1 else "middle" if share < 0.9 else "floor"

    def of(
        self, mu: Floats, chance: float, floor: float | None, rng: np.random.Generator
    ) -> Floats:
        """Noise for mean losses [n]."""
        drawn = {}
        for where, blocks in sorted(self._blocks.items()):
            picked = rng.integers(len(blocks), size=-(-len(mu) // BLOCK))
            drawn[where] = np.concatenate([blocks[i] for i in picked])[: len(mu)]
        at = [self._where(float(level), chance, floor) for level in mu]
        return np.array(
            [
                drawn[where][i] * (level if where == "above" else 1)
                for i, (where, level) in enumerate(zip(at, mu, strict=True))
            ]
        )


Shape = Callable[[np.random.Generator, Floats, float, float], Floats]
"""The mean losses at steps [n], from a chance and a floor."""


def _begin(rng: np.random.Generator, t: Floats, level: float) -> Floats:
    """A run's first steps: within a few it comes from up to twice the level to a plateau."""
    return level * (1 + rng.uniform(0, 1) * np.exp(-t / rng.uniform(1, 4)))


def _at_chance(rng: np.random.Generator, t: Floats, chance: float, floor: float) -> Floats:
    return _begin(rng, t, chance * (1 + rng.uniform(-0.01, 0.01)))


def _above_the_floor(rng: np.random.Generator, t: Floats, chance: float, floor: float) -> Floats:
    """A plateau 3.5 % of the way above the floor."""
    level = floor + 0.035 * (chance - floor)
    return level + (chance - level) * np.exp(-t / (len(t) * rng.uniform(0.01, 0.1)))


def _at_the_floor(rng: np.random.Generator, t: Floats, chance: float, floor: float) -> Floats:
    level = floor + rng.uniform(0, 0.01) * (chance - floor)
    return level + (chance - level) * np.exp(-t / (len(t) * rng.uniform(0.01, 0.1)))


def _through_chance(rng: np.random.Generator, t: Floats, chance: float, floor: float) -> Floats:
    """A straight or flattening fall that passes chance between the middle and a fifth after the end."""
    n, start = len(t), rng.uniform(1.1, 1.8) * chance
    passes = rng.uniform(0.5, 1.2) * n
    if rng.random() < 0.5:
        return np.maximum(floor, start - (start - chance) * t / passes)
    ends = rng.uniform(floor, 0.95 * chance)
    tau = passes / math.log((start - ends) / (chance - ends))
    return ends + (start - ends) * np.exp(-t / tau)


def _going_on(rng: np.random.Generator, t: Floats, chance: float, floor: float) -> Floats:
    """A fall from chance to the floor that takes about as long as the run, or longer."""
    tau = len(t) * math.exp(rng.uniform(math.log(0.3), math.log(5)))
    return floor + (chance - floor) * np.exp(-t / tau)


def _take_off(rng: np.random.Generator, t: Floats, chance: float, floor: float) -> Floats:
    """A plateau at chance, then a sudden fall, within the second half."""
    since, tau = rng.uniform(0.5, 1) * len(t), rng.uniform(3, 30)
    depth = rng.uniform(0.3, 1) * (chance - floor)
    return _begin(rng, t, chance) - depth * (1 - np.exp(-np.maximum(0, t - since) / tau))


def _rise(rng: np.random.Generator, t: Floats, chance: float, floor: float) -> Floats:
    """A run that learned, then loses it: to chance or above."""
    learned = chance - rng.uniform(0.05, 0.9) * (chance - floor)
    falls = learned + (chance - learned) * np.exp(-t / (len(t) * rng.uniform(0.05, 0.15)))
    since, tau = rng.uniform(0.5, 1) * len(t), len(t) * rng.uniform(0.01, 0.3)
    to = chance * rng.choice([1.0, rng.uniform(1.05, 3)])
    return falls + (to - learned) * (1 - np.exp(-np.maximum(0, t - since) / tau))


KINDS: dict[str, Shape] = {
    "plateau at chance": _at_chance,
    "plateau 3.5 % above the floor": _above_the_floor,
    "plateau at the floor": _at_the_floor,
    "slow fall through chance": _through_chance,
    "fall still going on": _going_on,
    "sudden take-off": _take_off,
    "rise to chance or above": _rise,
}


def simulate(name: str, noise: Noise, count: int, seed: int = 0) -> Iterator[Simulated]:
    """Curves of a kind with noise, of SHORTEST to LONGEST steps; every fourth is of a task without a floor,
    which then has larger noise."""
    rng = np.random.default_rng([seed, list(KINDS).index(name)])
    for i in range(count):
        n = round(math.exp(rng.uniform(math.log(SHORTEST), math.log(LONGEST))))
        chance, floor = noise.tasks[i % 4 == 3]
        mu = KINDS[name](rng, np.arange(n, dtype=float), chance, 1.2 if floor is None else floor)
        yield Simulated(mu + noise.of(mu, chance, floor, rng), chance, floor, mu)
