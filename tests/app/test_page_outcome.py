"""What the Duel page says came out: of the seeds that are shown, and of no run of other settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_kit import Open, checked, duel, shown, words_of
from shelf_kit import SMALL, kept
from streamlit.testing.v1 import AppTest

from normviz.config import seeded
from normviz.links import encode
from normviz.runs.store import Store

POST = SMALL.replace(scheme="post")


def came_out(at: AppTest) -> str:
    """The section's text; empty where it is not shown."""
    found = [words_of(one) for one in at.markdown]
    start = found.index("## What came out") if "## What came out" in found else len(found)
    notes = [words_of(one) for one in at.caption if "Held-out loss" in one.value]
    return "\n".join((*found[start : start + 2], *notes))


def test_one_seed_is_compared_without_an_interval_and_offers_more(page: Open, folder: Path) -> None:
    for config in (SMALL, POST):
        kept(Store(folder), config)
    at = page(encode((SMALL, POST)))
    assert "**A Pre-LN** learned: loss 1.50" in came_out(at)
    assert "B Post-LN ends at the same training loss as A Pre-LN." in came_out(at)
    checked(at.button(key="outcome_repeat").click().run())
    assert duel(at).seeds == 5 and len(duel(at).extra) == 8


def test_all_seeds_shown_are_compared_in_pairs(page: Open, folder: Path) -> None:
    for config in (*seeded(SMALL, 5), *seeded(POST, 4)):
        kept(Store(folder), config)
    at = page(f"{encode((SMALL, POST))}&seeds=5")
    said = came_out(at)
    assert "**A Pre-LN** learned in 5 of 5 seeds: loss 1.50" in said
    assert "**B Post-LN** learned in 4 of 5 seeds: loss 1.50; 1 without a result so far" in said
    assert "same training loss as A Pre-LN in 4 of 4 seeds" in said
    assert not [b for b in at.button if b.key == "outcome_repeat"]


def test_a_run_of_earlier_settings_says_nothing_about_the_present_ones(
    page: Open, folder: Path
) -> None:
    for config in (SMALL, POST, SMALL.replace(depth=16)):
        kept(Store(folder), config)
    at = page(encode((SMALL, POST)))
    checked(at.select_slider(key="knob_depth").set_value(16).run())  # stored for A alone
    said = came_out(at)
    assert "**B Post-LN** not trained with these settings yet" in said
    assert "not compared" in said and "ends" not in said


@pytest.mark.slow
def test_the_lane_that_others_are_compared_with_is_chosen(page: Open, folder: Path) -> None:
    lanes = (SMALL, POST, SMALL.replace(scheme="peri"))
    for config in lanes:
        kept(Store(folder), config)
    at = page(encode(lanes))
    assert "C Peri-LN ends at the same training loss as A Pre-LN" in came_out(at)
    checked(at.button_group(key="outcome_reference").set_value("C Peri-LN").run())
    assert "A Pre-LN ends at the same training loss as C Peri-LN" in came_out(at)
    assert "B Post-LN ends at the same training loss as C Peri-LN" in came_out(at)


def test_saved_charts_say_which_engine_trained_the_runs(page: Open, folder: Path) -> None:
    store, lanes = Store(folder), (SMALL, POST)
    for config in (*seeded(SMALL, 2), *seeded(POST, 2)[1:]):
        kept(store, config)
    kept(store, POST, "queued")
    said = shown(page(encode(lanes)))["caption"]
    assert said[2] == "Computed with PyTorch's own operations." and "?" in said[3]
    assert "LayerNorm, Xavier initialisation, Markov chain, learning rate" in said[1]
    assert said[1].endswith("steps, seed 0")
    store.db.connection.execute("UPDATE runs SET engine = 'tape' WHERE key = ?", (SMALL.key,))
    assert shown(page(encode(lanes)))["caption"][2] == "Computed in NormViz's engine in C++."
    assert shown(page(f"{encode(lanes)}&seeds=5"))["caption"][2] == (
        "2 of these 3 runs were computed with PyTorch's own operations, the other in NormViz's engine in C++."
    )
