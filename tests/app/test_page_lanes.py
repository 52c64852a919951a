"""The lanes' rows: headline, names, and the list of all placements; without a browser."""

from __future__ import annotations

from pathlib import Path

from page_kit import Open, checked, duel, settings_open, shown, words_of
from shelf_kit import SMALL, kept
from streamlit.testing.v1 import AppTest

from normviz.catalog import SCHEMES
from normviz.config import RunConfig
from normviz.lessons.presets import PRESETS
from normviz.links import encode
from normviz.runs.names import lane_name
from normviz.runs.store import Store
from normviz.training.events import Step


def headline(at: AppTest) -> str:
    """The page's heading, without the small words after it."""
    found = [words_of(one) for one in at.markdown if one.value.startswith("# ")]
    assert len(found) == 1
    return found[0].removeprefix("# ").partition(" :small")[0]


def names(*lanes: RunConfig) -> list[str]:
    return [" ".join(lane_name("ABCD"[i], lane, lanes).split()) for i, lane in enumerate(lanes)]


def test_the_headline_is_the_verdict_or_says_what_is_not_trained_and_what_trains(
    page: Open,
) -> None:
    """A name with a comma stands in brackets, and many lanes of one placement are letters."""
    for preset, words in (
        ("hero", "Pre-LN learned, Post-LN ended at chance."),
        ("init", "Post-LN with Xavier init ended at chance, Post-LN with PyTorch init learned."),
        ("high_lr",
         "Pre-LN learned little, Peri-LN and Pre-LN with QK-norm (per head, no scale) learned."),
    ):  # fmt: skip
        assert headline(page(encode(PRESETS[preset].lanes()))) == words
    lanes = [RunConfig(scheme="post", warmup=warmup, steps=33) for warmup in (0, 50, 100, 200)]
    assert headline(page(encode(lanes))) == "A, B, C and D are not trained yet."
    at = page(encode([RunConfig(scheme=scheme, steps=33) for scheme in ("pre_nofinal", "post")]))
    assert headline(at) == "Pre-LN (no final norm) and Post-LN are not trained yet."
    checked(at.button(key="train").click().run())
    assert headline(at) == "Training Pre-LN (no final norm) against Post-LN."


def test_a_paused_duel_says_at_which_step_and_resumes(page: Open, folder: Path) -> None:
    """The page asks for its next rendering where the step is another one."""
    lanes, store = [SMALL, SMALL.replace(scheme="post")], Store(folder)
    first, second = (
        kept(store, lane, "paused", steps) for lane, steps in zip(lanes, (39, 30), strict=True)
    )
    at = page(encode(lanes))
    assert headline(at) == "Paused at steps 38 and 29: Pre-LN against Post-LN."
    signature = shown(at)["signature"]
    store.append(second, [Step(i, 1.5, 1e-3, 1.0, None) for i in range(30, 39)])
    checked(at.run())
    assert headline(at) == "Paused at step 38: Pre-LN against Post-LN."
    assert shown(at)["signature"] != signature
    checked(at.button(key="pause").click().run())
    assert [store.controls(run, 0)[-1][1] for run in (first, second)] == ["resume"] * 2
    store.set_status(first, "running")
    checked(at.run())
    assert headline(at) == "Training Pre-LN against Post-LN."


def test_a_run_in_two_lanes_is_waited_for_once(page: Open, folder: Path) -> None:
    """As the socket of the numbers has it: else the page would ask for another rendering for ever."""
    run = kept(Store(folder), SMALL, "paused")
    at = page(encode([SMALL, SMALL]))
    assert shown(at)["topic"]["runs"] == [run, run]
    assert shown(at)["signature"].count("paused") == 1


def test_names_carry_what_differs_between_the_lanes() -> None:
    post = RunConfig(scheme="post")
    assert names(RunConfig(), post) == ["A Pre-LN", "B Post-LN"]
    assert names(post, post.replace(warmup=200)) == [
        "A Post-LN, warm-up 0", "B Post-LN, warm-up 200"
    ]  # fmt: skip
    assert names(
        post, post.replace(norm="rmsnorm", init="torch"), post.replace(qk_norm="head")
    ) == [
        "A Post-LN, LayerNorm, Xavier init",
        "B Post-LN, RMSNorm, PyTorch init",
        "C Post-LN, QK-norm (per head), LayerNorm and 1 more",
    ]
    assert names(post, post) == ["A Post-LN", "B Post-LN"]


def test_no_two_lanes_have_one_name() -> None:
    """What tells lanes of one placement apart stands first, and a name is as long as it needs to be."""
    short = RunConfig(depth=10)
    post = short.replace(scheme="post", init="torch", width=64)
    assert names(short, post, post.replace(warmup=200)) == [
        "A Pre-LN, Xavier init, width 32 and 1 more",
        "B Post-LN, warm-up 0, PyTorch init and 1 more",
        "C Post-LN, warm-up 200, PyTorch init and 1 more",
    ]
    first = RunConfig(norm="rmsnorm", init="torch", depth=4)
    for last in (first.replace(steps=50), first.replace(depth=5)):
        lanes = (RunConfig(), first, last, first.replace(norm="layernorm"))
        assert len({name[2:] for name in names(*lanes)}) == 4


def test_the_list_of_placements_is_grouped_and_sets_the_lane(page: Open) -> None:
    at = page()
    assert not [b for b in at.button if b.key and "_to_" in b.key]  # made once it is open
    settings_open(at, 1)
    keys = [b.key for b in at.button if b.key and b.key.startswith("lane1_to_")]
    assert sorted(keys) == sorted(f"lane1_to_{scheme}" for scheme in SCHEMES.keys())  # noqa: SIM118
    captions = {caption.value for caption in at.caption}
    assert {f"**{scheme.family}**" for scheme in SCHEMES} <= captions
    checked(at.button(key="lane1_to_resp").click().run())
    assert [lane.scheme for lane in duel(at).lanes] == ["pre", "resp"]
    assert not at.session_state["lane1_open"]
