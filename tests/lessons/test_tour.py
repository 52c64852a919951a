"""The tour's records: their runs ship, their sentences hold, their numbers are the runs' own."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from normviz.catalog import PROBES
from normviz.catalog.models import TABLE
from normviz.cli.ship import shipped_lanes
from normviz.config import RunConfig
from normviz.formats import ratio, short
from normviz.home import shipped as shipped_folder
from normviz.lessons.presets import PRESETS, quick
from normviz.lessons.suggest import MOST, suggestions
from normviz.lessons.tour import EARLY, STEPS, Runs, TourStep, numbered
from normviz.runs import shipped
from normviz.runs.frames import Frames
from normviz.runs.store import Store

RUNS = shipped_folder("assets") / "runs"
KEYS = [step.key for step in STEPS]
BY_KEY = {step.key: step for step in STEPS}


class Raw:
    """A shipped run read by numpy alone: none of the story's own code."""

    def __init__(self, path: Path) -> None:
        data = np.load(path)
        self.about = json.loads(str(data["about"]))
        self.loss = data["scalars"][:, 0]
        self.held_out = data["held_out"] if "held_out" in data.files else np.empty(0)
        self.steps, self.layers = data["layer_steps"].tolist(), data["layers"]

    def row(self, probe: str, step: int) -> np.ndarray:
        return self.layers[self.steps.index(step), PROBES.keys().index(probe)]

    @property
    def final(self) -> str:
        return f"{self.loss[-(len(self.loss) // 10 or 1) :].mean():.2f}"


@cache
def raw() -> dict[RunConfig, Raw]:
    found = [Raw(path) for path in sorted(RUNS.glob("*.npz"))]
    return {RunConfig(**run.about["config"]): run for run in found}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Callable[[TourStep], Runs]:
    store = Store(tmp_path_factory.mktemp("told"))
    shipped.adopt(store)
    frames = Frames(store)

    def runs(step: TourStep) -> Runs:
        found = [store.latest(lane.key) for lane in step.lanes()]
        return tuple(frames.recording(run) for run in found if run)

    return runs


def test_there_are_eleven_steps_and_an_address_names_them_from_one() -> None:
    assert len(STEPS) == 11
    assert [numbered(str(n)) for n in range(len(STEPS) + 2)] == [None, *range(1, 12), None]
    assert [numbered(word) for word in ("", "x", "-1", "1.0", "01", "٣", "1" * 5000)] == [None] * 7


def test_what_ships_is_every_lane_of_presets_quick_switch_and_tour_and_small() -> None:
    lanes = {lane for preset in PRESETS for lane in preset.lanes()}
    lanes |= {lane for step in STEPS for lane in step.lanes()} | set(quick())
    assert set(raw()) == lanes == set(shipped_lanes().values())
    assert {path.stem for path in RUNS.glob("*.npz")} == set(shipped_lanes())
    assert sum(path.stat().st_size for path in RUNS.glob("*.npz")) < 7e6


@pytest.mark.parametrize("key", KEYS)
def test_a_steps_sentence_holds_for_the_shipped_runs(key: str, told: Callable) -> None:
    step = BY_KEY[key]
    caption = step.caption(told(step))
    assert caption is not None
    assert not re.search(r"[{}]|nan|not finite", caption + step.where() + step.reason(told(step)))
    assert step.probe in PROBES
    if "token cosine" in (said := caption + step.reason(told(step))) or "cosine of" in said:
        assert step.probe == "token_cosine"


SPEAKS = {
    "stream_rms": r"\bstream\b", "grad_block": r"\bgradient", "token_cosine": r"\btokens?\b",
    "attn_logit_max": r"\blogits?\b", "branch_ratio": r"\bbranch\b.*\bbeside the stream\b",
}  # fmt: skip
"""What a text says that is about a quantity."""


@pytest.mark.parametrize("key", KEYS)
def test_a_steps_text_is_about_the_chart_that_it_shows(key: str) -> None:
    step = BY_KEY[key]
    assert re.search(SPEAKS[step.probe], step.look + step.result + step.why)
    if "the stream grows" in step.why:
        assert step.probe in ("stream_rms", "branch_ratio")


@pytest.mark.parametrize("key", KEYS)
def test_no_result_is_written_into_a_sentence(key: str) -> None:
    """Digits in the templates are steps named to look at, never something that was measured."""
    step = BY_KEY[key]
    bare = re.sub(r"\{[^}]*\}", "", step.result + step.why)
    assert set(re.findall(r"\d[\d.,]*", bare)) <= {"0", "1."}
    assert "because" not in step.result + step.look
    assert set(re.findall(r"\{([a-z_]+)\}", step.result + step.why)) == set(step.numbers)


@pytest.mark.parametrize("key", KEYS)
def test_another_outcome_is_not_said_to_be_this_one(key: str, told: Callable) -> None:
    """With its lanes in another order, no step tells its story."""
    step = BY_KEY[key]
    first, *others = told(step)
    assert step.caption((*others, first)) is None


def edge(run: Raw, step: int) -> str:
    row = run.row("grad_block", step)
    return ratio(row[-1] / row[1])


def cosine(run: Raw, step: int) -> str:
    return f"{run.row('token_cosine', step)[-1]:.2f}"


def logit(run: Raw) -> str:
    return short(run.row("attn_logit_max", run.steps[-1])[1:].max())


def rms(run: Raw, layer: int) -> str:
    return short(run.row("stream_rms", 0)[layer])


def moved(run: Raw) -> str:
    return f"{100 * run.row('update_ratio', 0)[-1]:.2g} %"


def branch(run: Raw) -> str:
    return short(run.row("branch_ratio", run.steps[-1])[-1])


def bad(run: Raw) -> str:
    return f"diverged at step {run.about['bad'][0]}"


def nats(run: Raw, name: str) -> str:
    return f"{run.about[name]:.2f}"


def peak(run: Raw) -> int:
    return int(np.argmax([run.row("token_cosine", step)[-1] for step in range(31)]))


ROWS = [
    row
    for row in json.loads(TABLE.read_text())["models"]
    if row["kind"] in ("decoder", "encoder", "encoder-decoder")
]
PLACED = Counter(row.get("placement") for row in ROWS)
STACKS = {
    "all": str(len(ROWS)), "pre": str(PLACED["pre"]), "post": str(PLACED["post"]),
    "both": str(PLACED["peri"] + PLACED["sandwich"]), "res": str(PLACED["resp"]),
}  # fmt: skip


def held(run: Raw) -> float:
    return float(run.held_out[~np.isnan(run.held_out)][-1])


EXPECTED: dict[str, Callable[..., dict[str, str]]] = {
    "why": lambda a, b: {
        "none": rms(a, -1), "pre": rms(b, -1), "bad": bad(a), "loss": b.final,
        "chance": nats(b, "chance"), "floor": nats(b, "floor"),
    },
    "places": lambda a, b: {"first": rms(a, 0), "last": rms(a, -1), "post": rms(b, -1)},
    "cliff": lambda a, b: {
        "start": edge(b, 0), "cliff": edge(b, 30), "early": "30", "plateau": b.final, "loss": a.final,
    },
    "tokens": lambda a, b: {
        "post": cosine(b, 0), "pre": cosine(a, 0), "peak": cosine(a, peak(a)), "when": str(peak(a)),
        "gap": short(1 - b.row("token_cosine", 10)[-1]), "later": cosine(a, 30), "early": "30",
    },
    "init": lambda a, b: {
        "torch": cosine(b, 0), "xavier": cosine(a, 0), "loss": b.final, "plateau": a.final,
    },
    "warmup": lambda a, b, c: {
        "plateau": a.final, "loss": b.final, "lost": c.final, "chance": nats(c, "chance"),
        "jump": moved(a), "eased": moved(b), "alike": short(1 - a.row("token_cosine", 10)[-1]),
        "apart": cosine(b, 10),
    },
    "rate": lambda a, b, c: {
        "pre": a.final, "peri": b.final, "qk": c.final,
        "high": logit(a), "calm": logit(b), "low": logit(c),
    },
    "room": lambda a, b, c: {"loss": a.final, "bad": bad(b), "deep": c.final},
    "mend": lambda a, b, c, d: {
        "plateau": a.final, "chance": nats(a, "chance"), "scaled": b.final, "admin": c.final,
        "deepnorm": d.final, "post": cosine(a, 0),
        "others": ", ".join(cosine(one, 0) for one in (b, c, d)),
    },
    "models": lambda a, b, c: {"a": a.final, "b": b.final, "c": c.final, **STACKS},
    "quality": lambda a, b: {
        "post": f"{held(a):.2f}", "pre": f"{held(b):.2f}", "gap": f"{abs(held(a) - held(b)):.2f}",
        "even": branch(a), "late": branch(b),
    },
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_captions_numbers_are_those_of_the_stored_runs(key: str, told: Callable) -> None:
    """Found anew in the files."""
    step = BY_KEY[key]
    runs = told(step)
    assert {name: of(runs) for name, of in step.numbers.items()} == EXPECTED[key](
        *(raw()[lane] for lane in step.lanes())
    )


@pytest.mark.parametrize(
    ("key", "answer"), [("cliff", "The last"), ("init", "Yes"), ("rate", "B: Peri-LN")]
)
def test_the_runs_answer_the_questions(key: str, answer: str, told: Callable) -> None:
    question = BY_KEY[key].question
    assert question is not None
    assert question.choices[question.answer(told(BY_KEY[key]))].startswith(answer)
    assert {step.key for step in STEPS if step.question} == {"cliff", "init", "rate"}


@pytest.mark.parametrize(
    ("value", "said"),
    [(270.4, "270"), (3.24, "3.2"), (0.9996, "1.0"), (16_234, "16,000"), (1.3e-7, "1e-7"),
     (0.0123, "0.012"), (2.4e9, "2e9"), (0.0, "0"), (float("inf"), "not finite")],
)  # fmt: skip
def test_numbers_read_well(value: float, said: str) -> None:
    assert short(value) == said


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.key)
def test_suggestions_change_something_and_keep_lanes_apart(preset) -> None:
    lanes = preset.lanes()
    found = suggestions(lanes)
    assert len(found) == MOST
    assert len({s.text for s in found}) == MOST
    for suggestion in found:
        assert suggestion.lanes != lanes
        assert len(set(suggestion.lanes)) == len(lanes)


def test_suggestions_keep_within_the_limits() -> None:
    heavy = (RunConfig(depth=23, width=512, steps=300, lr=0.1),)
    for suggestion in suggestions(heavy):
        assert suggestion.lanes != heavy


@pytest.mark.parametrize("key", KEYS)
def test_the_charts_stop_at_a_step_that_the_text_names_else_at_the_last(key: str) -> None:
    step = BY_KEY[key]
    text = f"{step.look} {step.result}".replace("{early}", str(EARLY))
    named = {int(n) for n in re.findall(r"\b(?:step|After) (\d+)\b", text)}
    assert step.at in named if named else step.at is None
