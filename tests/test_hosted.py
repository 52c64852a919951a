"""Hosted mode: what may be asked, by whom, and the sentence for what may not."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from crossing_kit import case
from hosted_kit import turn_on
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from normviz.app.session import policy as of_server
from task_kit import WORDS

from normviz import RunConfig
from normviz.config import RANGES, estimated_seconds
from normviz.home import VARIABLE
from normviz.lessons.presets import PRESETS
from normviz.lessons.tour import STEPS
from normviz.links import decode, encode
from normviz.model import texts
from normviz.policy import NO_TEXTS, SHARED, Kind, Misconfigured, Policy, Refused, from_environment
from normviz.runs.store import Store, cells, retention
from normviz.runs.store.queue import enqueue
from normviz.studies.claims import CLAIMS
from normviz.studies.maps import make

CONFIG = RunConfig(depth=3)


@pytest.fixture(autouse=True)
def _hosted(monkeypatch: pytest.MonkeyPatch) -> None:
    turn_on(monkeypatch)


def others(n: int) -> list[RunConfig]:
    return [CONFIG.replace(init_seed=seed) for seed in range(1, n + 1)]


# The switch and the limits


def test_without_the_switch_nothing_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in ("", "0", "no", " False "):
        monkeypatch.setenv("NORMVIZ_HOSTED", said)
        own = from_environment()
        assert own == Policy() and own.may([RunConfig(depth=1000, steps=0)]) is None
        assert "1000" in own.summary() and "shared" not in own.summary()
    monkeypatch.setenv("NORMVIZ_STORE_MB", "7")
    assert from_environment() == replace(Policy(), store_bytes=7_000_000)


def test_a_link_to_somebody_s_text_says_the_same_of_all_texts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    kept = CONFIG.replace(task="text", text=texts.add(WORDS), steps=0)
    away = kept.replace(text="0" * 32)
    monkeypatch.setattr(of_server, "_chosen", SHARED)
    assert of_server.link_notices([CONFIG, kept, away]) == [f"This link {NO_TEXTS}."]
    monkeypatch.setattr(of_server, "_chosen", Policy())
    assert of_server.link_notices([CONFIG, kept]) == []
    (missing,) = of_server.link_notices([kept, away])
    assert missing.startswith("This link trains on a text (hash 00000000")


def test_a_bad_variable_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NORMVIZ_HOSTED", "NORMVIZ_STORE_MB"):
        for said in ("maybe", "-1", "1e3", "²", "9" * 400, "<b>"):
            with monkeypatch.context() as patch, case(name, said):
                patch.setenv(name, said)
                with pytest.raises(Misconfigured, match=rf"{name} is .* allowed is"):
                    from_environment()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"depth": 97, "steps": 1}, "depth is 97, and this shared server trains up to 96"),
        ({"width": 132}, "width is 132, and this shared server trains up to 128"),
        ({"steps": 2001, "depth": 1}, "steps is 2,001, and this shared server trains up to 2,000"),
        ({"device": "cuda"}, "device is 'cuda', and this shared server trains on its CPU"),
        ({"depth": 96, "steps": 2000}, "gives a run up to 60 s: lower steps"),
        ({"depth": 96, "width": 128, "steps": 1}, "gives a run up to 0.25 GiB: lower depth"),
    ],
)
def test_what_is_too_large_is_refused_in_a_sentence(
    store: Store, change: dict, sentence: str
) -> None:
    config = RunConfig(**change)
    with pytest.raises(Refused, match=sentence):
        enqueue(store, [CONFIG, config], "a")
    assert store.queued() == []  # nothing, not the half of it
    assert decode({k: [v] for k, v in _params(config).items()}).lanes == (config,)


def _params(config: RunConfig) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in encode([config]).split("&"))


@pytest.mark.slow
def test_whatever_the_page_offers_may_be_asked() -> None:
    """Its card says of each other claim that it takes too long."""
    for offer in (*PRESETS, *STEPS):
        assert SHARED.may(offer.lanes()) is None
    minutes = {
        claim.key: sum(estimated_seconds(cell.config, "eager") for cell in claim.cells()) / 60
        for claim in CLAIMS
    }
    allowed = [key for key, takes in minutes.items() if takes <= SHARED.claim_minutes]
    for key in allowed:
        assert SHARED.may_take("claim", 60 * minutes[key]) is None
    assert len(allowed) > len(CLAIMS) / 2
    assert "up to 12 min" in (SHARED.may_take("claim", 60 * minutes["E3"]) or "")


def test_every_limit_lies_within_the_usual_one_and_is_said() -> None:
    here, words = SHARED, SHARED.summary()
    for name in ("depth", "width", "steps"):
        most = getattr(here, name)
        assert most in RANGES[name] and f"{most:,}" in words
        assert f"{most:,}" in here.help(name)
    for value in (here.open_runs, here.queue, f"{here.seconds:g} s", here.gib):
        assert str(value) in words


# The queue


def test_who_asks_for_what_trains_already_joins_it(store: Store) -> None:
    (theirs,) = enqueue(store, [CONFIG], "a")
    mine = enqueue(store, [CONFIG, CONFIG.replace(scheme="post")], "b")
    assert mine[0] == theirs and len(store.queued()) == 2
    record = store.run(theirs)
    assert record is not None and record.visitor == "a"
    assert SHARED.may_steer(record.visitor, "a") and not SHARED.may_steer(record.visitor, "b")
    twice = enqueue(store, [CONFIG.replace(lr=0.1)] * 2, "b")
    assert twice[0] == twice[1]


def test_nobody_joins_what_is_stopped_or_paused_has_no_process_or_is_given_up(store: Store) -> None:
    for seed, asked in enumerate(("stop", "pause")):
        config = CONFIG.replace(init_seed=7 + seed)
        (theirs,) = enqueue(store, [config], "a")
        store.control(theirs, asked)
        assert enqueue(store, [config], "b") != [theirs]
    (first,) = enqueue(store, [CONFIG], "a")
    (second,) = enqueue(store, [CONFIG], "a", instead=[first])
    assert second != first
    db = store.db.connection
    db.execute(
        "UPDATE runs SET status = 'running', pid = 4194304 WHERE id IN (?, ?)", (first, second)
    )
    assert enqueue(store, [CONFIG], "b")[0] not in (first, second)


def test_outside_of_hosted_mode_everybody_gets_a_run_of_their_own(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "policy", Policy())
    (one,) = enqueue(store, [CONFIG], "a")
    assert enqueue(store, [CONFIG, CONFIG], "b") == [one + 1, one + 2]
    record = store.run(one)
    assert record is not None and Policy().may_steer(record.visitor, "b")


def test_a_visitor_has_so_many_open_runs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    turn_on(monkeypatch, store, open_runs=3)
    runs = enqueue(store, others(3), "a")
    with pytest.raises(Refused, match="you have 3 open runs and ask for 1 more"):
        enqueue(store, [CONFIG], "a")
    enqueue(store, [CONFIG], "b")
    enqueue(store, [CONFIG.replace(scheme="post")], "a", instead=runs[:1])
    store.control(runs[0], "stop")
    store.control(runs[1], "stop")
    enqueue(store, [CONFIG.replace(scheme="peri")], "a")


def test_the_queue_holds_so_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    turn_on(monkeypatch, store, queue=4)
    for seed, config in enumerate(others(4)):
        enqueue(store, [config], f"visitor {seed}")
    with pytest.raises(Refused, match=r"4 runs wait already and 1 more .* holds 4"):
        enqueue(store, [CONFIG], "a")
    assert enqueue(store, others(4), "a") == store.queued()  # joining takes no room


def test_a_store_full_of_what_must_stay_takes_no_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NORMVIZ_STORE_MB", "1")
    turn_on(monkeypatch, store)
    (run,) = enqueue(store, [CONFIG], "a")
    store.end(run, "stopped")
    ballast = "UPDATE runs SET message = CAST(zeroblob(1200000) AS TEXT) WHERE id = ?"
    store.db.connection.execute(ballast, (run,))
    retention.link(store, [run])
    enqueue(store, [CONFIG], "a")  # the linked one may go: its link says so, and Train repeats it
    store.db.connection.execute("UPDATE runs SET origin = 'shipped' WHERE id = ?", (run,))
    with pytest.raises(Refused, match=r"full of runs that wait, train or ship: .*NORMVIZ_STORE_MB"):
        enqueue(store, [CONFIG.replace(lr=0.1)], "a")


@pytest.mark.slow
@examples(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=25))
def test_whatever_is_asked_the_limits_hold(asked: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), replace(SHARED, open_runs=4, queue=7))
        for number, (visitor, n) in enumerate(asked):
            configs = [CONFIG.replace(init_seed=10 * number + i) for i in range(n)]
            waits = len(store.queued())
            try:
                got = len(enqueue(store, configs, visitor))
            except Refused:
                got = 0
            assert len(store.queued()) == waits + got <= 7 and got in (0, n)
        store.db.connection.close()


# Texts


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """A config on a text that the data folder holds."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    return CONFIG.replace(task="text", text=texts.add(WORDS))


def test_the_queue_takes_no_run_on_a_text(store: Store, own: RunConfig) -> None:
    waits = store.enqueue(own)  # from the time when the server was not shared
    with pytest.raises(Refused, match="this shared server neither takes such texts"):
        enqueue(store, [CONFIG, own], "a")
    assert store.queued() == [waits] and store.run(waits) is None


def test_maps_and_claims_take_no_run_on_a_text(
    store: Store, own: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = make(own, {"lr": [1e-3, 1e-2]})
    claim = replace(next(iter(CLAIMS)), key="own")
    monkeypatch.setitem(claim.__dict__, "cells", lambda seeds=None: list(grid.cells))
    for asked in (
        lambda: cells.ask(store, [cell.config for cell in grid.cells], "map", "a"),
        lambda: cells.ask(
            store, [cell.config for cell in claim.cells()], "claim", "a", lab="norms"
        ),
    ):
        with pytest.raises(Refused, match="this shared server neither takes such texts"):
            asked()


def test_a_map_too_large_or_too_long_is_refused_where_it_is_queued(store: Store) -> None:
    """Whatever the page has asked before: a script can press a button that is off."""

    def ask(kind: Kind, *depths: int) -> None:
        cells.ask(store, [CONFIG.replace(depth=depth) for depth in depths], kind, "a")

    with pytest.raises(Refused, match="depth is 97, and this shared server"):
        ask("map", 1, 97)
    store.policy = replace(SHARED, map_minutes=0.0)
    with pytest.raises(Refused, match="gives it up to 0 min"):
        ask("map", 1)
    assert store.queued(cells=True) == []
    ask("claim", 97)  # a claim's settings are ours
    store.policy = Policy()
    ask("map", 1, 98)
    assert len(store.queued(cells=True)) == 3
