"""The anatomy of placements without a browser: what it explains, its link, and its measurements."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from anatomy_kit import lanes, measure, runs, said
from crossing_kit import case
from page_kit import Open, address, checked, duel, specs, words_of
from streamlit.testing.v1 import AppTest

from normviz import RunConfig
from normviz.catalog import PROBES, SCHEMES
from normviz.lessons.anatomy import code, constants, formula, gradient_path
from normviz.links import encode
from normviz.runs.store import Store
from normviz.training.events import Started

QUANTITIES = ("stream_rms", "grad_block", "token_cosine")


def test_a_placement_of_each_family_is_explained(anatomy: Open) -> None:
    """Each on the page that was at another one before. What is said of the others is by the same records."""
    at = anatomy("lanes=1&scheme=none&depth=6")
    for scheme in {one.family: one for one in SCHEMES if one.key != "none"}.values():
        with case(scheme.key):
            checked(at.selectbox(key="anatomy_scheme").set_value(scheme.key).run())
            assert_explained(at, scheme.key)


def assert_explained(at: AppTest, scheme: str) -> None:
    record = SCHEMES[scheme]
    assert lanes(at) == [(scheme, 6)]
    assert not at.error
    config = RunConfig(scheme=scheme, depth=6, steps=0)
    assert [block.value for block in at.code] == [code(config, 32).strip()]
    latex = [element.value for element in at.latex]
    for _, line in formula(scheme, 6) + gradient_path(scheme, 6):
        assert any(line in shown for shown in latex)
    for line in constants(scheme, 6):
        assert any(line in shown for shown in latex)
    for words in (record.sentence, record.trouble, record.used_by):
        assert words.replace("(", "").split(" ")[0] in said(at)


def test_a_link_opens_the_same_anatomy(anatomy: Open) -> None:
    at = anatomy("lanes=2&scheme=keel,peri&depth=7&norm=rmsnorm&init=torch&qk_norm=on")
    assert lanes(at) == [("keel", 7), ("peri", 7)]
    again = anatomy("&".join(f"{name}={word}" for name, word in address(at).items()))
    assert again.session_state["anatomy"].lanes == at.session_state["anatomy"].lanes
    assert not again.info  # the address names every setting
    assert [code.value for code in again.code] == [block.value for block in at.code]


def test_the_controls_change_placements_and_address(anatomy: Open) -> None:
    at = anatomy()
    assert lanes(at) == [("pre", 12), ("post", 12)]
    checked(at.selectbox(key="anatomy_scheme").set_value("deepnorm").run())
    checked(at.slider(key="anatomy_depth").set_value(5).run())
    checked(at.selectbox(key="anatomy_norm").set_value("rmsnorm").run())
    assert lanes(at) == [("deepnorm", 5), ("post", 5)]
    assert address(at)["depth"] == "5"
    assert len(at.code) == 2
    checked(at.selectbox(key="anatomy_second").set_value(None).run())
    assert lanes(at) == [("deepnorm", 5)]
    checked(at.selectbox(key="anatomy_second").set_value("mixln").run())
    assert {lane.norm for lane in at.session_state["anatomy"].lanes} == {"rmsnorm"}


def test_a_bad_link_gets_a_sentence(anatomy: Open) -> None:
    for query, sentence in (
        ("depth=97", "depth is 97, allowed on this page is a whole number from 1 to 96"),
        ("depth=0", "depth is '0', allowed is a whole number from 1 to 1000"),
        ("scheme=<b>x</b>", "scheme is '<b>x</b>', allowed is one of"),
        ("qk_norm=&v=1", "qk_norm is ''"),
    ):
        at = anatomy(query)
        assert sentence in words_of(at.error[0])
        assert lanes(at) == [("pre", 12), ("post", 12)]
    at = anatomy(encode([RunConfig(scheme="keel", depth=500)]))
    checked(at.button(key="mend_0").click().run())
    assert lanes(at) == [("keel", 96)]


def test_a_placement_says_what_it_does_beyond_its_slots(anatomy: Open) -> None:
    """Its own norm, in the diagram and in place of the warning of one that is not used, and the rule
    for its weights."""
    for scheme, own in (("ngpt", True), ("pre", False)):
        at = anatomy(f"lanes=1&scheme={scheme}&norm=batchnorm")
        assert ("brings its own norm" in said(at)) == own
        assert ("N the norm (L2 norm)" in said(at)) == own
        assert ("future" in said(at)) != own
        assert ("is divided by its length" in said(at)) == own


def test_of_more_lanes_the_first_two_are_shown(anatomy: Open) -> None:
    at = anatomy(encode([RunConfig(scheme=key) for key in ("pre", "post", "peri")]))
    assert lanes(at) == [("pre", 12), ("post", 12)]
    assert "the first two are shown" in words_of(at.info[0])


def test_each_config_is_measured_once(anatomy: Open, folder: Path) -> None:
    """Whoever waits for it, whatever its training settings, and if both placements are one."""
    anatomy("lanes=2&scheme=pre,pre")
    anatomy(encode([RunConfig(lr=0.1, steps=50, warmup=10)]))
    assert runs(folder) == [("pre", 0, "queued")]
    at = anatomy()
    for _ in range(3):
        checked(at.run())
    anatomy()
    assert runs(folder) == [("pre", 0, "queued"), ("post", 0, "queued")]
    assert not specs(at)


def test_measured_runs_are_charted(anatomy: Open, folder: Path) -> None:
    at = anatomy("lanes=2&scheme=pre,post&depth=3")
    for scheme in ("pre", "post"):
        measure(folder, RunConfig(scheme=scheme, depth=3, steps=0))
    checked(at.run())
    drawn = [element.proto.spec for element in at.get("vega_lite_chart")]
    assert len(drawn) == 3
    for spec, probe in zip(drawn, QUANTITIES, strict=True):
        assert PROBES[probe].unit in spec
        assert "A Pre-LN" in spec and "B Post-LN" in spec
    assert "3 blocks of width 32" in said(at)
    assert len(runs(folder)) == 2
    # The curves stay on screen while another depth is measured.
    checked(at.slider(key="anatomy_depth").set_value(4).run())
    assert len(specs(at)) == 3
    assert "Measuring" in said(at) or "then measuring" in said(at)


def test_what_is_measured_in_a_moment_comes_with_the_page(
    anatomy: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And neither with a tick after it nor with another run of the page."""
    monkeypatch.setattr(Store, "supervisor", lambda self: (True, True))
    monkeypatch.setattr("normviz.app.views.catalog.measured.MOMENT_SECONDS", 60.0)
    config = RunConfig(depth=3, steps=0)

    def work() -> None:
        while Store(folder).latest(config.key) is None:
            time.sleep(0.01)
        measure(folder, config)

    worker = threading.Thread(target=work)
    worker.start()
    at = anatomy("lanes=1&scheme=pre&depth=3")
    worker.join()
    assert len(specs(at)) == 3
    assert "3 blocks of width 32, first batch" in said(at)
    assert "Measuring" not in said(at)


def test_what_is_no_longer_looked_at_is_stopped_unless_it_has_begun(
    anatomy: Open, folder: Path
) -> None:
    at, store = anatomy("lanes=1&scheme=pre&depth=3"), Store(folder)
    checked(at.slider(key="anatomy_depth").set_value(4).run())
    first, second = (store.latest(RunConfig(depth=d, steps=0).key) for d in (3, 4))
    assert first and [action for _, action, _ in store.controls(first.id, 0)] == ["stop"]
    assert second and not store.controls(second.id, 0)
    store.started(
        second.id, Started(second.config, "cpu", 1, 1, 1.0, 1.0, None), os.getpid(), False
    )
    checked(at.slider(key="anatomy_depth").set_value(5).run())
    assert not store.controls(second.id, 0)


def test_a_run_that_failed_is_said_and_can_be_measured_again(anatomy: Open, folder: Path) -> None:
    at = anatomy("lanes=1&scheme=pre&depth=3")
    store = Store(folder)
    run = store.latest(RunConfig(depth=3, steps=0).key)
    assert run
    store.end(run.id, "failed", message="out of <b>luck</b>")
    checked(at.run())
    assert "Pre-LN could not be measured: out of" in words_of(at.error[0])
    assert len(runs(folder)) == 1
    checked(at.button(key="measure_again").click().run())
    assert [status for *_, status in runs(folder)] == ["failed", "queued"]


@pytest.fixture
def turned_to(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Titles of the pages that a button opened."""
    titles: list[str] = []
    monkeypatch.setattr("streamlit.switch_page", lambda page: titles.append(page.title))
    return titles


def test_what_is_shown_is_trained_in_a_duel(
    anatomy: Open, folder: Path, turned_to: list[str]
) -> None:
    at = anatomy("lanes=2&scheme=keel,peri&depth=7&norm=rmsnorm&init=torch&qk_norm=on&lr=0.1")
    queued = runs(folder)
    assert at.button(key="train_these").label == "Train these two"
    checked(at.button(key="train_these").click().run())
    assert turned_to == ["Duel"]
    settings = RunConfig(scheme="keel", depth=7, norm="rmsnorm", init="torch", qk_norm="on")
    assert duel(at).lanes == (settings, settings.replace(scheme="peri"))
    assert duel(at).runs == (None, None) and duel(at).asked
    assert runs(folder) == queued  # it starts nothing


def test_one_alone_is_trained_beside_another(anatomy: Open, turned_to: list[str]) -> None:
    for scheme, peer in (("keel", "Pre-LN"), ("pre", "Post-LN")):
        at = anatomy(f"lanes=1&scheme={scheme}&depth=5")
        assert at.button(key="train_these").label == f"Train this one beside {peer}"
        checked(at.button(key="train_these").click().run())
        first, second = duel(at).lanes
        assert (first, SCHEMES.label(second.scheme)) == (RunConfig(scheme=scheme, depth=5), peer)
    assert turned_to == ["Duel", "Duel"]


def test_what_cannot_be_trained_is_said(anatomy: Open, turned_to: list[str]) -> None:
    at = anatomy("lanes=1&scheme=pre&depth=32&width=512&batch=32&seq_len=32&steps=0")
    checked(at.button(key="train_these").click().run())
    assert turned_to == []
    assert "are allowed: lower steps" in words_of(at.error[0])


def test_the_duel_leads_here(page: Open) -> None:
    at = page()
    at.session_state["why"] = True
    (link,) = [one for one in at.run().get("page_link") if one.proto.page == "catalogue"]
    assert "scheme=pre%2Cpost" in link.proto.query_string
    assert "steps=0" in link.proto.query_string
