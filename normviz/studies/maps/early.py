"""When a cell is stopped early because it will stay at chance, and why by this rule.

Flat losses alone do not say that a run is dead. Post-LN often sits exactly at chance and then leaves:
10 blocks with Xavier at a rate of 0.001 do after more than a hundred steps. What sets those apart that
stay is the gradient: while the tokens of a stuck model are all alike, next to nothing of it reaches
the bottom. Of 71 Post-LN runs of 150 to 400 steps (2 to 32 blocks, both initialisations, rates of
1e-4 to 3e-2), 28 ended at chance: at step 64 the first block's gradient was below 1e-3 of the last
one's in 25 of them, down to 0. In the 9 that sat at chance for 30 to 107 steps and left, it never was
below 1e-2 at steps 32 and 64. So a cell counts as dead when, after its warm-up,

* the mean of ten losses has stayed within 4 % of chance for at least 30 steps in which the learning
  rates add up to 0.03 (Adam moves a weight by about the rate a step: at 1e-4 that is 300 steps),
* the second half of this plateau is not lower than the first by 1 % of chance, and
* at three looks 16 steps apart the first block's gradient was below 1e-3 of the last one's.

The rule applies only where it was measured (MEASURED, `python -m tests.bench.early`): to Post-LN, where
each setting by itself lies within what those runs vary (not every combination was run) and every other
setting has its default. `copy` sits at chance for long before it learns at once, a falling rate brings
stuck runs back, SGD is slow, with a beta2 of 0.9 14 blocks leave chance within 800 steps, and in 1000
blocks of DeepNorm the first block's gradient is 1e-4 of the last one's while they learn: there nothing
is stopped.

The same command counts how often the rule is wrong. It applies to 44 of 86 runs (all presets and tour
steps, grids where Post-LN is about to fail, 400 steps where it leaves chance late).
It stopped 18, and none of them would have trained. Of 300 settings that are drawn from all over its scope,
each with seeds of its own, it stopped 148, and 1 of them would have trained: 0.7 %, with a 95 % interval of
0.1 to 3.7 %. These runs end after at most 400 steps: what a stopped run would do later is not measured.
"""

from __future__ import annotations

from ...catalog import PROBES
from ...catalog.setting import Range
from ...config import RANGES, SETTINGS, RunConfig
from ...runs import Run
from ...runs.verdict import WINDOW
from ...training.events import Step
from ...training.schedule import lr_at

FLAT = "flat at chance since step "
"""How the message of a run begins that was stopped by this rule."""

NEAR, FALL = 0.04, 0.01
STEPS, TRAVEL = 30, 0.03
FIRST, GAP, LOOKS = 32, 16, 3
CUT_OFF = 1e-3
MEASURED: dict[str, Range | tuple[str, ...]] = {
    "scheme": ("post",),
    "init": ("xavier", "torch"),
    "task": ("markov", "prose"),
    "depth": Range(6, 24, whole=True),
    "lr": Range(1e-3, 1e-2),
    "warmup": Range(0, 200, whole=True),
    "steps": Range(0, 400, whole=True),
    "init_seed": RANGES["init_seed"],
    "data_seed": RANGES["data_seed"],
}
"""Where the rule was measured. The shortest runs had 150 steps, but at a constant rate a shorter run is
the beginning of a longer one. Seeds are repeats: any will do."""
USUAL = RunConfig()
GRAD = PROBES.keys().index("grad_block")


def applies(config: RunConfig) -> bool:
    """Whether the rule was measured for such runs: all settings but those of MEASURED are default."""
    return all(
        getattr(config, name) in MEASURED.get(name, (getattr(USUAL, name),)) for name in SETTINGS
    )


def looks(config: RunConfig) -> range:
    """The steps at which a run is looked at, which needs its layers."""
    return range(FIRST, config.steps if applies(config) else 0, GAP)


class FlatDetector:
    """Watches the steps of one run."""

    def __init__(self, config: RunConfig, chance: float) -> None:
        self.config, self.chance = config, chance
        self.losses: list[float] = []
        self.since: int | None = None
        self.travel = 0.0
        self.looked = -GAP
        self.cut_off = 0
        self.applies = applies(config)

    def check(self, step: Step) -> str | None:
        """Take in the next step. The reason to stop after it, if there is one."""
        self.losses.append(step.loss)
        if not self.applies or step.step < max(self.config.warmup, WINDOW):
            return None
        self._look_at_loss(step.step)
        self._look_at_gradient(step)
        if self.since is None or self.cut_off < LOOKS:
            return None
        enough = step.step - self.since >= STEPS and self.travel >= TRAVEL
        return f"{FLAT}{self.since}" if enough and not self._falls() else None

    def _look_at_loss(self, step: int) -> None:
        mean = sum(self.losses[-WINDOW:]) / WINDOW
        if not abs(mean - self.chance) <= NEAR * self.chance:
            self.since = None
            return
        if self.since is None:
            self.since, self.travel = step, 0.0
        self.travel += lr_at(self.config, step)

    def _look_at_gradient(self, step: Step) -> None:
        if step.layers is None or step.step < FIRST or step.step - self.looked < GAP:
            return
        first, last = step.layers[GRAD, 1], step.layers[GRAD, -1]
        self.looked = step.step
        self.cut_off = self.cut_off + 1 if first < CUT_OFF * last else 0

    def _falls(self) -> bool:
        """Whether the second half of the plateau lies below its first."""
        plateau = self.losses[self.since :]
        half = len(plateau) // 2
        return sum(plateau[:half]) - sum(plateau[-half:]) > FALL * self.chance * half


def is_flat(run: Run) -> bool:
    """Whether a run was stopped by this rule."""
    return run.status == "stopped" and (run.message or "").startswith(FLAT)
