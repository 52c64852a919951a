"""The page's behaviour, without a browser: switches, knobs, transport, cursor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from anatomy_kit import measure
from crossing_kit import case
from normviz.app.asgi.snapshot import Topic, read_snapshot
from normviz.app.views.duel import share, transport
from normviz.app.views.duel.knobs import GROUPS
from normviz.app.views.duel.lanes import current
from page_kit import MAIN, Open, checked, chips, duel, runs, shown, words_of
from shelf_kit import SMALL, begin, kept
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from normviz import RunConfig
from normviz.catalog import NORMS, SCHEMES
from normviz.duel.presets import PRESETS, QUICK
from normviz.duel.seeds import seeded
from normviz.links import encode
from normviz.runs.store import Store


def test_opens_with_the_finished_hero_and_replays(page: Open) -> None:
    at = page()
    first, second = chips(at)
    assert "learned: loss 1." in first
    assert "at chance so far" in second
    assert len(runs(at)) == 2 and shown(at)["start"] == "replay"


@pytest.mark.slow
def test_the_page_never_loads_torch(folder: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]);"
        "from streamlit.testing.v1 import AppTest;"
        "from normviz.execution.client import SupervisorClient; SupervisorClient.ensure = lambda self: None;"
        "at = AppTest.from_file(sys.argv[1], default_timeout=60).run();"
        "assert not at.exception and at.get('bidi_component');"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, MAIN, str(Path(MAIN).parent)], check=True)


@pytest.mark.parametrize("scheme", QUICK)
def test_a_switch_changes_its_lane_alone(page: Open, scheme: str) -> None:
    at = page()
    checked(at.button_group(key="lane1_scheme").set_value(scheme).run())
    assert duel(at).lanes == (RunConfig(), RunConfig(scheme=scheme))


@pytest.mark.slow
def test_the_list_has_every_placement_and_the_page_explains_it(page: Open) -> None:
    """One after another on one page, which begins with Post-LN."""
    at = page()
    at.session_state["why"] = True
    for scheme in sorted(SCHEMES, key=lambda scheme: scheme.key == "post"):
        with case(scheme.key):
            checked(at.selectbox(key="lane1_any_scheme").set_value(scheme.key).run())
            assert duel(at).lanes == (RunConfig(), RunConfig(scheme=scheme.key))
            assert at.button_group(key="lane1_scheme").value == scheme.key
            assert any(scheme.sentence in caption.value for caption in at.caption)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("lane0_norm", "rmsnorm", {"norm": "rmsnorm"}),
        ("lane0_init", "torch", {"init": "torch"}),
        ("lane0_qk_norm", "on", {"qk_norm": "on"}),
    ],
)
def test_pickers_change_their_lane(page: Open, key: str, value: str, expected: dict) -> None:
    at = page()
    checked(at.selectbox(key=key).set_value(value).run())
    assert duel(at).lanes == (RunConfig(**expected), RunConfig(scheme="post"))


@pytest.mark.parametrize("norm", ["rmsnorm", "batchnorm", "powernorm"])
def test_a_lane_warns_of_a_norm_that_leaks(page: Open, norm: str) -> None:
    at = page()
    checked(at.selectbox(key="lane1_norm").set_value(norm).run())
    said = [caption.value for caption in at.caption if "sees the future" in caption.value]
    assert len(said) == bool(NORMS[norm].warning)


def test_a_placement_with_a_norm_of_its_own_says_so(page: Open) -> None:
    at = page("lanes=2&scheme=ngpt,pre&norm=batchnorm")
    said = [c.value for c in at.caption if ":material/warning:" in c.value]
    assert ["brings its own norm" in caption for caption in said] == [True, False]


def test_v_norm_is_among_the_settings_of_all_lanes(page: Open) -> None:
    at = page()
    at.session_state["more"], at.session_state["more_group"] = True, "Attention"
    checked(at.run())
    checked(at.selectbox(key="knob_v_norm").set_value("on").run())
    assert {lane.v_norm for lane in duel(at).lanes} == {"on"}


def more(at: AppTest, **state: str) -> list[str]:
    """The settings that the expander shows, after the search and the group are set."""
    at.session_state["more"] = True
    for name, value in state.items():
        at.session_state[f"more_{name}"] = value
    checked(at.run())
    keys = [w.key or "" for w in (*at.selectbox, *at.text_input)]
    return sorted(key.removeprefix("knob_") for key in keys if key in {f"knob_{n}" for n in MORE})


MORE = [name for names in GROUPS.values() for name in names]


def test_every_setting_has_a_widget(page: Open) -> None:
    usual = {
        "family",
        "scheme",
        "norm",
        "init",
        "depth",
        "lr",
        "warmup",
        "steps",
        "task",
        "text",
        "init_seed",
        "lr_edits",
    }
    assert {*MORE} | usual == set(RunConfig.model_fields)
    at = page()
    shown = [name for group in GROUPS for name in more(at, group=group)]
    assert sorted(shown) == sorted(MORE)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("muon", ["optimizer"]),
        ("RoPE", ["positions"]),
        ("weight decay", ["decay_on", "optimizer", "weight_decay"]),
        ("bfloat16", ["rounding"]),
        ("nothing of the kind", []),
    ],
)
def test_a_search_finds_settings_by_name_choice_and_help(
    page: Open, words: str, found: list[str]
) -> None:
    at = page()
    assert [n for n in more(at, find=words) if n in found] == found
    if not found:
        assert "No setting has" in " ".join(caption.value for caption in at.caption)


def test_the_settings_that_differ_come_first(page: Open) -> None:
    at = page("scheme=pre,post&optimizer=muon&width=64&lr=0.01")
    assert "Changed: width 64, optimizer Muon." in [one.value for one in at.caption]
    assert more(at) == ["optimizer", "width"]
    checked(at.selectbox(key="knob_optimizer").set_value("adamw").run())
    checked(at.text_input(key="knob_width").set_value("32").run())
    assert not any(one.value.startswith("Changed") for one in at.caption)
    assert "width" in more(at)


@pytest.mark.parametrize(
    ("name", "value"), [("depth", 24), ("warmup", 100), ("steps", 50), ("lr", 0.3)]
)
def test_knobs_change_all_lanes(page: Open, name: str, value: float) -> None:
    at = page()
    checked(at.select_slider(key=f"knob_{name}").set_value(value).run())
    assert [getattr(lane, name) for lane in duel(at).lanes] == [value, value]
    assert "settings changed" in chips(at)[0]
    assert at.button(key="train").label == "Train (settings changed)"


@pytest.mark.parametrize(
    ("name", "typed", "sentence"),
    [
        ("width", "2000", "Width is '2000', allowed is a whole number from 4 to 1024"),
        ("width", "30", "Width is 30 and heads is 4, but the heads must divide the width"),
        ("dropout", "x", "Dropout is 'x', allowed is a number from 0 to below 1"),
        ("clip", "-1", "Clip is '-1', allowed is off, or a number above 0, up to 1e+06"),
        ("ffn_ratio", "0", "FFN ratio is '0', allowed is a whole number from 1 to 16"),
        ("softcap", "x", "Logit soft-cap is 'x', allowed is off, or a number above 0, up to 1e+06"),
    ],
)
def test_a_bad_value_is_said_and_changes_nothing(
    page: Open, name: str, typed: str, sentence: str
) -> None:
    at = page()
    more(at, group="Optimisation" if name == "clip" else "Model")
    before = duel(at).lanes
    checked(at.text_input(key=f"knob_{name}").set_value(typed).run())
    assert [words_of(error) for error in at.error] == [sentence]
    assert duel(at).lanes == before
    field = at.text_input(key=f"knob_{name}")
    assert field.value == typed and below(at, f"knob_{name}") == at.error[0]


def below(at: AppTest, key: str) -> object:
    """The element after the widget with this key."""
    every = [one for one in at.main if not isinstance(one, Block)]
    return every[next(i for i, one in enumerate(every) if one.key == key) + 1]


@pytest.mark.parametrize("refused", ["33", ""])
def test_a_refused_value_is_over_once_any_is_accepted(page: Open, refused: str) -> None:
    """Also the present one, which adds no entry to the history."""
    at = page()
    more(at, group="Model")
    before = duel(at).lanes
    for key, value in (("knob_width", "32"), ("knob_heads", "2")):
        checked(at.text_input(key="knob_width").set_value(refused).run())
        assert len(at.error) == 1 and at.text_input(key="knob_width").value == refused
        checked(at.text_input(key=key).set_value(value).run())
        assert not at.error and at.text_input(key="knob_width").value == "32"
        assert (duel(at).lanes == before) == duel(at).kept == (value == "32")


def test_a_refused_value_goes_with_its_field(page: Open) -> None:
    at = page()
    more(at, group="Model")
    checked(at.text_input(key="knob_width").set_value("33").run())
    more(at, group="Data")
    assert not at.error
    more(at, group="Model")
    assert not at.error and at.text_input(key="knob_width").value == "32"


def test_a_refused_choice_is_said_under_it(page: Open) -> None:
    at = page(encode(PRESETS["vit"].lanes()))
    more(at, group="Attention")
    checked(at.selectbox(key="knob_mask").set_value("causal").run())
    assert at.selectbox(key="knob_mask").value == "causal"
    (error,) = at.error
    assert words_of(error).startswith("Family is vit and attention mask is causal")
    assert below(at, "knob_mask") == error
    checked(at.selectbox(key="knob_mask").set_value("none").run())
    assert not at.error


def test_one_lane_can_differ_in_any_setting(page: Open) -> None:
    at = page()
    checked(at.selectbox(key="lane1_own").set_value("init_seed").run())
    checked(at.text_input(key="lane1_value").set_value("7").run())
    assert [lane.init_seed for lane in duel(at).lanes] == [0, 7]
    assert any("init seed: 0 → 7" in caption.value for caption in at.caption)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_one_to_four_lanes(page: Open, n: int) -> None:
    at = page()
    checked(at.button_group(key="n_lanes").set_value(n).run())
    assert len(chips(at)) == n
    assert len(runs(at)) == n


def test_train_queues_every_lane_and_the_address_names_them(page: Open, folder: Path) -> None:
    at = page()
    checked(at.button_group(key="lane1_scheme").set_value("peri").run())
    checked(at.button(key="train").click().run())
    store = Store(folder)
    runs = [store.run(run) for run in duel(at).runs]
    assert [(run.config.scheme, run.status) for run in runs if run] == [
        ("pre", "queued"), ("peri", "queued"),
    ]  # fmt: skip
    assert at.query_params["scheme"] in ("pre,peri", ["pre,peri"])
    checked(at.button(key="stop").click().run())
    assert {action for run in runs if run for _, action, _ in store.controls(run.id, 0)} == {"stop"}


LONG = 2 * transport.ASKS_SECONDS


def asked(at: AppTest) -> list[str]:
    return [words_of(one) for one in at.warning]


def test_train_asks_before_it_ends_a_run_that_has_trained_for_long(
    page: Open, folder: Path
) -> None:
    at, store = page("lanes=2&scheme=pre,post&depth=3&steps=2000"), Store(folder)
    checked(at.button(key="train").click().run())
    first, second = runs(at)
    begin(store, first, 326, LONG)
    for answer in ("train_on", "train_again"):
        checked(at.button(key="train").click().run())
        assert asked(at) == ["This ends the run at step 325 of 2,000."]
        assert runs(at) == [first, second] and store.queued() == [second]
        assert not any(store.controls(run, 0) for run in (first, second))
        checked(at.button(key=answer).click().run())
        assert not asked(at)
    assert {first, second}.isdisjoint(runs(at))
    for run in (first, second):
        assert [action for _, action, _ in store.controls(run, 0)] == ["stop"]


def test_train_names_the_furthest_of_several_runs(page: Open, folder: Path) -> None:
    at, store = page("lanes=2&scheme=pre,post&depth=3&steps=2000"), Store(folder)
    checked(at.button(key="train").click().run())
    for run, steps in zip(runs(at), (30, 41), strict=True):
        begin(store, run, steps, LONG)
    checked(at.button(key="train").click().run())
    assert asked(at) == ["This ends 2 runs, the furthest at step 40 of 2,000."]


def test_train_beside_the_faded_curves_asks_too_and_a_short_run_is_not_asked_for(
    page: Open, folder: Path
) -> None:
    at, store = page("lanes=1&depth=3&steps=2000"), Store(folder)
    checked(at.button(key="train").click().run())
    (short,) = runs(at)
    begin(store, short)
    checked(at.button(key="train").click().run())
    (run,) = runs(at)
    assert run != short and not asked(at)
    begin(store, run, seconds=LONG)
    checked(at.select_slider(key="knob_depth").set_value(4).run())
    checked(at.button(key="train_before").click().run())
    assert runs(at) == [run] and asked(at)
    store.end(run, "finished")  # before the answer
    checked(at.run())
    assert not asked(at) and not duel(at).asks


def test_while_something_trains_pause_is_the_first_button_and_t_does_nothing(page: Open) -> None:
    at = page()

    def kinds() -> list[tuple[str, str]]:
        found = [at.button(key=key).proto for key in ("train", "pause")]
        return [(one.type, one.shortcut) for one in found]

    assert kinds()[0] == ("primary", "t")
    checked(at.button(key="train").click().run())
    assert kinds() == [("secondary", ""), ("primary", "p")]
    checked(at.select_slider(key="knob_depth").set_value(4).run())
    assert at.button(key="train_before").proto.type == "secondary"


def test_a_new_rate_goes_to_the_open_runs(page: Open, folder: Path) -> None:
    at = page()
    checked(at.button(key="train").click().run())
    checked(at.select_slider(key="knob_lr").set_value(0.01).run())
    store = Store(folder)
    for run in duel(at).runs:
        assert [(a, v) for _, a, v in store.controls(run, 0)] == [("lr", 0.01)]
        assert store.run(run).config.lr == 0.01
    assert [lane.lr for lane in duel(at).lanes] == [0.01, 0.01]  # they wait: from their first step


def test_reset_brings_the_hero_back(page: Open) -> None:
    at = page()
    checked(at.select_slider(key="knob_depth").set_value(24).run())
    checked(at.button(key="reset").click().run())
    assert duel(at).lanes == (RunConfig(), RunConfig(scheme="post"))
    assert "learned" in chips(at)[0]


def test_repeats_are_paused_stopped_and_left_like_the_lanes(page: Open, folder: Path) -> None:
    at = page()
    checked(at.button(key="repeat").click().run())
    store = Store(folder)
    extra = duel(at).extra
    assert len(extra) == 8 and duel(at).seeds == 5
    assert at.button(key="step").disabled
    checked(at.button(key="pause").click().run())
    assert all([a for _, a, _ in store.controls(run, 0)] == ["pause"] for run in extra)
    checked(at.button_group(key="n_lanes").set_value(1).run())
    left = duel(at).extra
    assert len(left) == 4
    assert all(store.controls(run, 0)[-1][1] == "stop" for run in extra - left)
    checked(at.button(key="reset").click().run())
    assert all(store.controls(run, 0)[-1][1] == "stop" for run in extra)
    assert not duel(at).extra and duel(at).seeds == 1


def test_where_several_seeds_are_shown_chips_and_charts_say_of_which_they_are(
    page: Open, folder: Path
) -> None:
    """And what is taken away holds all of them."""
    store = Store(folder)
    lanes = (SMALL, SMALL.replace(scheme="post", init_seed=3))
    for config in (*seeded(lanes[0], 5)[:4], lanes[1]):
        kept(store, config)
    at = page(f"{encode(lanes)}&seeds=5")
    own, all_seeds, other, *_ = chips(at)
    assert own.startswith(":green-badge[seed 0: learned")
    assert "learned in 4 of 5 seeds: loss 1.50; 1 without a result" in all_seeds
    assert "seed" not in other and len(chips(at)) == 3
    what = shown(at)
    topic = Topic(tuple(what["runs"]), "grad_block", repeats=tuple(map(tuple, what["repeats"])))
    found = read_snapshot(topic).lanes
    labels = ["A  Pre-LN, init seed 0", "B  Post-LN, init seed 3"]
    assert found and [frame.label for frame in found.frames] == labels
    from normviz.app.session.backend import shared  # the page's own

    taken = share._taken(current(duel(at), shared())[0], shared(), "")
    assert [one.config for one in taken.seeds] == seeded(SMALL, 5)[:4]


def test_there_may_be_no_next_seed(page: Open, folder: Path) -> None:
    config = RunConfig(depth=1, steps=0, init_seed=2**31 - 1)
    measure(folder, config)
    at = page(encode([config]))
    checked(at.button(key="repeat").click().run())
    assert "2147483647" in duel(at).refused and not duel(at).extra


def test_there_may_be_no_next_seed_where_five_are_shown(page: Open, folder: Path) -> None:
    config = RunConfig(depth=1, steps=0, init_seed=2**31 - 4)
    measure(folder, config)
    at = page(f"{encode([config])}&seeds=5")
    checked(at.button(key="repeat").click().run())
    (said,) = [words_of(error) for error in at.error]
    assert said.startswith("There are no 5 seeds from here") and "2147483647" in said
    assert not duel(at).extra


def test_a_typed_value_that_is_not_allowed_stays_to_be_corrected(page: Open) -> None:
    at = page()
    at.selectbox(key="lane1_own").set_value("warmup")
    checked(at.text_input(key="lane1_value").set_value("1o0").run())
    assert at.text_input(key="lane1_value").value == "1o0"
    assert "Warm-up is '1o0'" in words_of(at.error[0])
    checked(at.text_input(key="lane1_value").set_value("100").run())
    assert at.text_input(key="lane1_value").value == "" and duel(at).lanes[1].warmup == 100


def test_an_error_names_a_setting_without_its_underscore(page: Open) -> None:
    at = page()
    checked(at.text_input(key="knob_init_seed").set_value("x").run())
    assert words_of(at.error[0]).startswith("Init seed is 'x'")


def test_the_diagrams_of_the_blocks_are_described(
    page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[str] = []
    monkeypatch.setattr("streamlit.image", lambda *_, alt="", **__: words.append(alt))
    at = page()
    assert not words
    at.session_state["why"] = True
    checked(at.run())
    assert len(words) == 2 and "Pre-LN" in words[0] and "Post-LN" in words[1]
