"""The page's behaviour, without a browser: switches, knobs, transport, cursor."""

from __future__ import annotations

from pathlib import Path

import pytest
from anatomy_kit import measure
from crossing_kit import case
from normviz.app.asgi.channel import Topic, read_snapshot
from normviz.app.session.duel import LONG_SECONDS
from normviz.app.views.duel import share
from normviz.app.views.duel.knobs import GROUPS
from normviz.app.views.duel.lanes import current
from page_kit import Open, checked, chips, duel, runs, settings_open, shown, words_of
from shelf_kit import SMALL, begin, kept
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from normviz import RunConfig
from normviz.catalog import CELLS, FAMILIES, NORMS, SCHEMES, TASKS
from normviz.config import SETTINGS, seeded
from normviz.lessons.presets import PRESETS, QUICK
from normviz.links import encode
from normviz.runs.store import Store, pictures


def test_opens_with_the_finished_hero_and_replays(page: Open) -> None:
    at = page()
    first, second = chips(at)
    assert "learned: loss 1." in first
    assert "at chance" in second
    assert len(runs(at)) == 2 and shown(at)["start"] == "replay"


def test_a_page_with_results_asks_for_their_picture(page: Open, folder: Path) -> None:
    """Not before the visitor has guessed how they came out, and once."""
    store = Store(folder)
    at = page("story=5")
    page("scheme=post,pre&depth=13")  # nobody has trained it
    page()  # its picture ships
    assert pictures.waiting(store) is None
    checked(at.button(key="guess_none").click().run())
    waiting = pictures.waiting(store)
    assert waiting is not None and waiting[1] == ",".join(map(str, duel(at).runs))
    checked(at.run())
    assert pictures.waiting(store) == waiting


@pytest.mark.slow
def test_a_switch_and_the_list_change_their_lane_alone_and_the_page_explains_it(page: Open) -> None:
    """One after another on one page: those of the switch, and one of each family."""
    at = page()
    at.session_state["why"] = True
    quick = [SCHEMES[key] for key in QUICK]
    for scheme in [*quick, *{one.family: one for one in SCHEMES}.values()]:
        with case(scheme.key):
            if scheme in quick:
                checked(at.button_group(key="lane1_scheme").set_value(scheme.key).run())
            else:
                settings_open(at, 1)  # a choice closes them
                checked(at.selectbox(key="lane1_any_scheme").set_value(scheme.key).run())
            assert duel(at).lanes == (RunConfig(), RunConfig(scheme=scheme.key))
            assert at.button_group(key="lane1_scheme").value == scheme.key
            assert any(scheme.sentence in caption.value for caption in at.caption)
    assert len(settings_open(at, 1).selectbox(key="lane1_any_scheme").options) == len(SCHEMES)


@pytest.mark.slow
def test_pickers_change_their_lane_and_warn_of_a_norm_that_leaks(page: Open) -> None:
    at, expected = settings_open(page(), 0, 1), RunConfig()
    for name, value in (("norm", "rmsnorm"), ("init", "torch"), ("qk_norm", "on")):
        checked(at.selectbox(key=f"lane0_{name}").set_value(value).run())
        expected = expected.replace(**{name: value})
        assert duel(at).lanes == (expected, RunConfig(scheme="post"))
    for norm in ("rmsnorm", "batchnorm", "powernorm"):
        checked(at.selectbox(key="lane1_norm").set_value(norm).run())
        said = [caption.value for caption in at.caption if "sees the future" in caption.value]
        assert len(said) == bool(NORMS[norm].warning)
    at = page("lanes=2&scheme=ngpt,pre&norm=batchnorm")
    said = [c.value for c in at.caption if ":material/warning:" in c.value]
    assert ["brings its own norm" in caption for caption in said] == [True, False]


def more(at: AppTest, **state: str) -> list[str]:
    """The settings that the expander shows, after the search and the group are set."""
    at.session_state["more"] = True
    for name, value in state.items():
        at.session_state[f"more_{name}"] = value
    checked(at.run())
    keys = [w.key or "" for w in (*at.selectbox, *at.text_input)]
    return sorted(key.removeprefix("knob_") for key in keys if key in {f"knob_{n}" for n in MORE})


MORE = [name for names in GROUPS.values() for name in names]


@pytest.mark.slow
def test_every_setting_has_a_widget_and_a_search_finds_it(page: Open) -> None:
    """By name, choice and help."""
    assert {setting.group for setting in SETTINGS.values()} == {"", *GROUPS}
    at = page()
    shown = [name for group in GROUPS for name in more(at, group=group)]
    assert sorted(shown) == sorted(MORE)
    for words, found in (
        ("muon", ["optimizer"]), ("RoPE", ["positions"]), ("bfloat16", ["rounding"]),
        ("weight decay", ["decay_on", "optimizer", "weight_decay"]), ("nothing of the kind", []),
    ):  # fmt: skip
        assert [n for n in more(at, find=words) if n in found] == found
    assert "No setting has" in " ".join(caption.value for caption in at.caption)


def test_the_settings_that_differ_come_first(page: Open) -> None:
    at = page("scheme=pre,post&norm=rmsnorm&init=xavier,torch&optimizer=muon&width=64&lr=0.01")
    words = [getattr(one, "label", "") or getattr(one, "value", "") for one in at.main]
    changed = words.index(
        "Changed: norm RMSNorm, initialisation Xavier or PyTorch, width 64, optimizer Muon."
    )
    assert words.index("All settings") < changed, "what comes and goes moves no setting"
    assert more(at) == ["optimizer", "width"]
    assert any("Norm: RMSNorm." in one.value for one in at.caption)
    checked(at.selectbox(key="knob_optimizer").set_value("adamw").run())
    checked(at.text_input(key="knob_width").set_value("32").run())
    checked(at.selectbox(key="knob_norm").set_value("layernorm").run())
    assert not any("Norm: " in one.value for one in at.caption)
    for init in ("torch", "xavier"):  # the first lane has Xavier already
        checked(at.selectbox(key="knob_init").set_value(init).run())
    assert not any(one.value.startswith("Changed") for one in at.caption)
    assert "width" in more(at)


@pytest.mark.slow
def test_knobs_change_all_lanes(page: Open) -> None:
    at = page()
    for name, value in (("depth", 24), ("warmup", 100), ("steps", 50), ("lr", 0.3)):
        checked(at.select_slider(key=f"knob_{name}").set_value(value).run())
        assert [getattr(lane, name) for lane in duel(at).lanes] == [value, value]
        assert "settings changed" in chips(at)[0]
    at.session_state["more"], at.session_state["more_group"] = True, "Attention"
    checked(at.run())
    checked(at.selectbox(key="knob_v_norm").set_value("on").run())
    assert {lane.v_norm for lane in duel(at).lanes} == {"on"}
    checked(at.button(key="reset").click().run())
    assert duel(at).lanes == PRESETS["hero"].lanes() and "learned" in chips(at)[0]
    at = page("v=1&steps=50&lr_edits=5:0.1;30:0.2")
    checked(at.select_slider(key="knob_steps").set_value(20).run())
    assert duel(at).lanes == (RunConfig(steps=20, lr_edits=((5, 0.1),)),)
    checked(
        at.select_slider(key="knob_lr").set_value(0.01).run()
    )  # without what an earlier run did
    assert duel(at).lanes == (RunConfig(steps=20, lr=0.01),)


REFUSED = {
    "width": ("30", "Width is 30 and heads is 4, but the heads must divide the width"),
    "dropout": ("x", "Dropout is 'x', allowed is a number from 0 to below 1"),
    "ffn_ratio": ("0", "FFN ratio is '0', allowed is a whole number from 1 to 16"),
    "softcap": ("x", "Logit soft-cap is 'x', allowed is off, or a number above 0, up to 1e+06"),
    "clip": ("-1", "Clip is '-1', allowed is off, or a number above 0, up to 1e+06"),
}


@pytest.mark.slow
def test_a_bad_value_is_said_under_its_field_and_changes_nothing(page: Open) -> None:
    at = page()
    before = duel(at).lanes
    for name, (typed, sentence) in REFUSED.items():
        more(at, group="Optimisation" if name == "clip" else "Model")
        checked(at.text_input(key=f"knob_{name}").set_value(typed).run())
        assert [words_of(error) for error in at.error] == [sentence]
        assert duel(at).lanes == before
        field = at.text_input(key=f"knob_{name}")
        assert field.value == typed and below(at, f"knob_{name}") == at.error[0]
    more(at, group="Data")
    assert not at.error
    more(at, group="Model")
    assert not at.error and at.text_input(key="knob_width").value == "32"
    checked(at.text_input(key="knob_init_seed").set_value("x").run())
    assert words_of(at.error[0]).startswith("Init seed is 'x'")


def test_train_says_which_value_it_did_not_take(page: Open) -> None:
    at = page()
    more(at, group="Model")
    typed, sentence = REFUSED["width"]
    checked(at.text_input(key="knob_width").set_value(typed).run())
    checked(at.button(key="train").click().run())
    assert [words_of(error) for error in at.error] == [sentence]
    assert at.text_input(key="knob_width").value == "32" and below(at, "knob_width") != at.error[0]


def below(at: AppTest, key: str) -> object:
    """The element after the widget with this key."""
    every = [one for one in at.main if not isinstance(one, Block)]
    return every[next(i for i, one in enumerate(every) if one.key == key) + 1]


def test_a_refused_value_is_over_once_any_is_accepted(page: Open) -> None:
    """Also the present one."""
    at = page()
    more(at, group="Model")
    before = duel(at).lanes
    for refused, key, value in (("33", "width", "32"), ("", "heads", "2")):
        checked(at.text_input(key="knob_width").set_value(refused).run())
        assert len(at.error) == 1 and at.text_input(key="knob_width").value == refused
        checked(at.text_input(key=f"knob_{key}").set_value(value).run())
        assert not at.error and at.text_input(key="knob_width").value == "32"
        assert (duel(at).lanes == before) == (key == "width")


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


def test_one_to_four_lanes(page: Open) -> None:
    at = page()
    for n in (1, 4, 3, 2):
        checked(at.button_group(key="n_lanes").set_value(n).run())
        assert len(chips(at)) == len(runs(at)) == n


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
    checked(
        at.select_slider(key="knob_lr").set_value(0.01).run()
    )  # they wait: from their first step
    assert [(lane.lr, lane.lr_edits) for lane in duel(at).lanes] == [(0.01, ())] * 2
    checked(at.button(key="stop").click().run())
    for run in filter(None, runs):
        assert [(a, v) for _, a, v in store.controls(run.id, 0)] == [("lr", 0.01), ("stop", None)]


LONG = 2 * LONG_SECONDS


def asked(at: AppTest) -> list[str]:
    return [words_of(one) for one in at.warning]


@pytest.mark.slow
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
    for run, steps in zip(runs(at), (30, 41), strict=True):
        begin(store, run, steps, LONG)
    checked(at.button(key="train").click().run())
    assert asked(at) == ["This ends 2 runs, the furthest at step 40 of 2,000."]


@pytest.mark.slow
def test_a_run_that_has_trained_for_long_is_paused_with_its_duel_and_goes_on(
    page: Open, folder: Path
) -> None:
    """With fewer lanes, another duel and Back; what is put aside later ends it."""
    at, store = page("lanes=2&scheme=pre,post&depth=3&steps=2000"), Store(folder)

    def acts(run: int) -> list[str]:
        return [action for _, action, _ in store.controls(run, 0)]

    def left() -> list[str]:
        return [one.value for one in at.markdown if one.value.startswith("Paused with")]

    checked(at.button(key="train").click().run())
    lanes, (first, second) = duel(at).lanes, runs(at)
    begin(store, second, 326, LONG)
    checked(at.button_group(key="n_lanes").set_value(1).run())
    assert left() == ["Paused with the duel before: the run at step 325 of 2,000."]
    assert (acts(first), acts(second)) == ([], ["pause"])
    checked(at.button(key="left_on").click().run())
    assert (duel(at).lanes, runs(at)) == (lanes, [first, second]) and not left()
    assert (acts(first), acts(second)) == ([], ["pause", "resume"])
    checked(at.button(key="reset").click().run())
    assert left() and (acts(first)[-1], acts(second)[-1]) == ("pause", "pause")
    checked(at.button(key="tour").click().run())
    assert left() and "stop" not in acts(second)
    checked(at.button(key="left_end").click().run())
    assert not left() and (acts(first)[-1], acts(second)[-1]) == ("stop", "stop")


@pytest.mark.slow
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
    assert shown(at)["begins"] and shown(at)["asked"]
    checked(at.select_slider(key="knob_depth").set_value(4).run())
    assert at.button(key="train_before").proto.type == "secondary"


@pytest.mark.slow
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
    assert "learned in 4 of 5 seeds: loss 1.50; 1 without a result so far" in all_seeds
    assert "seed" not in other and len(chips(at)) == 3
    found = read_snapshot(Topic(**shown(at)["topic"])).lanes
    labels = ["A  Pre-LN, init seed 0", "B  Post-LN, init seed 3"]
    assert [lane.label for lane in found] == labels
    from normviz.app.session.backend import shared  # the page's own

    taken = share._taken(current(duel(at), shared())[0], shared())
    assert [run.config for run in taken.recordings] == seeded(SMALL, 5)[:4]


def test_there_may_be_no_next_seed(page: Open, folder: Path) -> None:
    for seed, query in ((2**31 - 1, ""), (2**31 - 4, "&seeds=5")):
        config = RunConfig(depth=1, steps=0, init_seed=seed)
        measure(folder, config)
        at = page(f"{encode([config])}{query}")
        checked(at.button(key="repeat").click().run())
        assert "2147483647" in words_of(at.error[0]) and not duel(at).extra


def test_one_lane_can_differ_in_any_setting(page: Open) -> None:
    """A value that is not allowed stays to be corrected."""
    at = settings_open(page(), 1)
    at.selectbox(key="lane1_own").set_value("warmup")
    checked(at.text_input(key="lane1_value").set_value("1o0").run())
    assert at.text_input(key="lane1_value").value == "1o0"
    assert "Warm-up is '1o0'" in words_of(at.error[0])
    checked(at.text_input(key="lane1_value").set_value("100").run())
    assert at.text_input(key="lane1_value").value == ""
    assert [lane.warmup for lane in duel(at).lanes] == [0, 100]
    assert "(0 / 100)" in at.select_slider(key="knob_warmup").label
    assert any("warm-up: 0 → 100" in caption.value for caption in at.caption)
    checked(at.checkbox(key="lane1_all").check().run())
    checked(at.text_input(key="lane1_value").set_value("50").run())
    assert [lane.warmup for lane in duel(at).lanes] == [50, 50]


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


# Models that are not decoders


@pytest.mark.slow
def test_a_link_of_another_family_opens_with_its_formula_and_settings(page: Open) -> None:
    for family in FAMILIES:
        with case(family.key):
            lane = RunConfig(family=family.key)
            other = "cell_none" if lane.scheme in CELLS else "post"
            at = page(encode([lane, lane.replace(scheme=other)]))
            assert [one.family for one in duel(at).lanes] == [family.key] * 2
            assert at.selectbox(key="knob_family").value == family.key
            labels = {TASKS.label(task) for task in family.tasks}
            assert {*at.selectbox(key="knob_task").options} == labels
            for part in ("why", "lane0_open", "more"):
                at.session_state[part] = True
            checked(at.run())


def test_changing_the_family_brings_its_settings_and_back(page: Open) -> None:
    at = page(encode([RunConfig(init_seed=5)]))
    checked(at.selectbox(key="knob_family").set_value("rnn").run())
    (lane,) = duel(at).lanes
    assert (lane.family, lane.scheme, lane.task, lane.init_seed) == (
        "rnn", "pre_activation", "digits", 5
    )  # fmt: skip
    checked(at.selectbox(key="knob_family").set_value("decoder").run())
    assert duel(at).lanes == (RunConfig(init_seed=5),)


def test_lanes_of_another_family_are_a_comparison(page: Open) -> None:
    """A recurrent net without and with the norm; and on the way back two placements as well."""
    at = page(encode([RunConfig(), RunConfig(scheme="post")]))
    for family, schemes in (
        ("rnn", ["cell_none", "pre_activation"]), ("mlp", ["pre", "post"]),
        ("lstm", ["cell_none", "pre_activation"]), ("decoder", ["pre", "post"]),
    ):  # fmt: skip
        checked(at.selectbox(key="knob_family").set_value(family).run())
        assert [lane.scheme for lane in duel(at).lanes] == schemes, family


def test_a_setting_that_a_family_lacks_gets_its_sentence(page: Open) -> None:
    at = page(encode([RunConfig(family="mlp")]))
    settings_open(at, 0)
    checked(at.selectbox(key="lane0_qk_norm").set_value("on").run())
    assert any(
        "it has no attention" in words_of(one) for one in [*at.error, *at.warning, *at.markdown]
    )
