"""`normviz bench attack`: visitors of a shared server feel little of one that asks too much of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cli_kit import normviz
from normviz.app.bench import attackers

from normviz.bench import attack, browser
from normviz.bench.attack import Attacked, measure, table
from normviz.bench.load import Observed

WELL = Observed(20, 0, [3.0] * 20, [0.5] * 20, [0.3] * 20, [], 0.0, [0.2] * 40)


def attacked(seen: Observed = WELL, peak: float = 650.0, after: float = 210.0) -> Attacked:
    return Attacked("idle", seen, 205.0, 230.0, peak, after)


def test_the_table_says_which_goal_was_missed() -> None:
    assert attacked().wrong == []
    cut = Observed(19, 0, [1.0], [5.0], [3.0], ["ConnectionError: gone"], 0.0, [4.0])
    bad = attacked(cut, peak=800.0, after=300.0)
    assert bad.wrong == [
        "1 cut off (ConnectionError: gone)",
        "pages late",
        "clicks late",
        "charts slow",
        "memory high",
        "memory not back",
    ]
    starved = replace(WELL, rates=[7.0] * 19 + [0.5])
    assert attacked(starved).wrong == ["charts slow"], "the goal holds for every visitor"
    grown = attacked(after=230.0)
    assert grown.wrong == ["memory not back"]
    assert replace(grown, server_calm=215.0).wrong == [], "visitors alone would have filled as much"
    assert "pages late" in attacked(Observed(0, 20, [3.0], [], [], [], 0.0, [0.1])).wrong
    text = table([attacked(), bad], 20, 60, 60)
    assert text.splitlines()[-2].endswith("held") and "205 to 230" in text


def test_every_attack_of_the_table_is_one_that_the_attackers_know() -> None:
    assert {*attack.ATTACKS} - {attack.NONE} == {*attackers.ATTACKS}


def test_attackers_connect_to_this_machine_alone() -> None:
    with pytest.raises(ValueError, match=r"allowed is 127\.0\.0\.1"):
        attackers.Target("http://192.0.2.1:80")


@pytest.mark.slow
def test_visitors_go_on_while_memory_is_attacked() -> None:
    """Cut off, memory and updates; how late pages are is for a machine with nothing else to do."""
    for seconds in (5, 20, 60):  # longer where the machine is too busy for a click and an update
        (found,) = measure(["frames"], visitors=3, seconds=seconds, after=1)
        if found.seen.clicks and found.seen.rates:
            break
    assert not found.seen.failures
    assert found.seen.clicks and found.seen.rates
    assert found.server_peak < found.server_before + 100, "without limits: 400 MiB more"


@pytest.mark.slow
def test_a_server_that_does_not_answer_in_time_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(browser, "START_SECONDS", 0)
    result = normviz("bench", "attack", attack.NONE)
    assert result.exit_code == 2
    assert "the server did not answer at http://127.0.0.1:" in result.stderr
