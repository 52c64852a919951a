"""What came out of a duel, in words: no word is stronger than the runs behind it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from normviz import RunConfig
from normviz.config import seeded
from normviz.runs import Recording, Status, Steps
from normviz.runs.outcome import outcome
from normviz.training.events import Diverged, Started, Step

CHANCE, N = 3.32, 100
A, B = RunConfig(steps=N), RunConfig(scheme="post", steps=N)


def run(
    config: RunConfig,
    final: float,
    status: Status = "finished",
    fall: float = 0,
    held_out: float | None = None,
) -> Recording:
    """A run that ends flat at a loss, or falls by so much in each of its last steps."""
    losses = np.linspace(CHANCE, final, 50).tolist() + [final + fall * (49 - i) for i in range(50)]
    steps = [Step(i, loss, 1e-3, 1.0, None, held_out) for i, loss in enumerate(losses)]
    bad = Diverged(99, 2, "activation") if status == "diverged" else None
    started = Started(config, "cpu", 1, 1234, CHANCE, 1.1, None)
    return Recording(config, started, status, bad, steps=Steps.of(steps, config.depth))


def lane(config: RunConfig, *finals: float) -> list[Recording]:
    return [run(c, x) for c, x in zip(seeded(config, len(finals)), finals, strict=True)]


def test_five_seeds_give_counts_a_mean_and_students_interval() -> None:
    a, b = (1.19, 1.24, 1.20, 1.22, 1.21), (3.32, 3.34, 3.32, 3.33, 3.31)
    found = outcome({"A": lane(A, *a), "B": lane(B, *b)}, 5)
    assert found.lanes == (
        ("A", "learned in 5 of 5 seeds: loss 1.19 to 1.24"),
        ("B", "at chance in 5 of 5 seeds: loss 3.31 to 3.34"),
    )
    d = np.subtract(b, a)
    half = 2.776 * d.std(ddof=1) / math.sqrt(5)  # Student's t for four degrees of freedom
    (said,) = found.comparisons
    assert said == (
        f"B ends above A in training loss in 5 of 5 seeds, by {d.mean():.2f} nats on average (95 % interval "
        f"{d.mean() - half:.2f} to {d.mean() + half:.2f} by Student's t, paired by seed)."
    )
    assert found.notes == ()
    (turned,) = outcome({"A": lane(A, *a), "B": lane(B, *b)}, 5, "B").comparisons
    assert turned == said.replace("B ends above A", "A ends below B")


def test_one_seed_has_no_interval_and_two_are_too_few() -> None:
    (one,) = outcome({"A": lane(A, 1.2), "B": lane(B, 3.3)}).comparisons
    assert one == "B ends 2.10 nats above A in training loss. One seed gives no interval."
    (two,) = outcome({"A": lane(A, 1.2, 1.21), "B": lane(B, 3.3, 3.3)}, 2).comparisons
    assert "in 2 of 2 seeds" in two and "At least 3 seeds are needed to tell them apart" in two


def test_lanes_whose_seeds_disagree_are_not_told_apart() -> None:
    a, b = (1.20, 1.21, 1.22), (1.21, 1.20, 1.224)
    (said,) = outcome({"A": lane(A, *a), "B": lane(B, *b)}, 3).comparisons
    assert said.startswith("B ends above A in training loss in 2 of 3 seeds, by 0.001 nats")
    assert (
        said.endswith("These seeds do not tell them apart in training loss.")
        and "interval -0." in said
    )
    (same,) = outcome({"A": lane(A, *a), "B": lane(A, *a)}, 3).comparisons
    assert same == "B ends at the same training loss as A in 3 of 3 seeds."


def test_held_out_losses_are_compared_where_both_lanes_have_them() -> None:
    """A ends lower in training and higher on what it has not seen."""
    a, b = run(A, 1.20, held_out=1.30), run(B, 1.22, held_out=1.24)
    found = outcome({"A": [a], "B": [b]})
    assert found.lanes[0][1].endswith("; held-out 1.30")
    assert found.comparisons == (
        "B ends 0.06 nats below A in held-out loss. One seed gives no interval. Its training loss ends 0.02 "
        "above.",
    )
    (said,) = outcome({"A": [a], "B": [run(B, 1.22)]}).comparisons
    assert said.startswith("B ends 0.02 nats above A in training loss.")
    (said,) = outcome({"A": [a], "B": [run(B, 1.22, held_out=math.inf)]}).comparisons
    assert said == "B is not compared with A: a held-out loss is not finite."
    lanes = {
        name: [run(c, final, held_out=x) for c, x in zip(seeded(config, 3), losses, strict=True)]
        for name, config, final, losses in (
            ("A", A, 1.2, (1.30, 1.31, 1.29)), ("B", B, 1.22, (1.24, 1.24, 1.24)),
        )
    }  # fmt: skip
    found = outcome(lanes, 3)
    assert found.comparisons[0].startswith(
        "B ends below A in held-out loss in 3 of 3 seeds, by 0.06 nats"
    )
    assert found.comparisons[0].endswith("paired by seed). Its mean training loss ends 0.02 above.")
    assert (
        "The interval is over seeds. It says nothing about other held-out examples." in found.notes
    )


def test_on_few_examples_a_run_is_judged_by_its_held_out_loss() -> None:
    """As the graph of the karate club: a training loss of 0 says nothing about the other members."""
    club = RunConfig(family="gnn", task="karate", steps=N)
    for held_out, word in ((1.48, "memorised"), (0.68, "memorised"), (0.31, "learned")):
        it = replace(
            run(club, 0.0, held_out=held_out), started=Started(club, "cpu", 1, 9, 0.69, None, None)
        )
        said = f"{word}: training 0.00, held-out {held_out:.2f}, chance 0.69"
        assert outcome({"A": [it]}).lanes == (("A", said),)
        assert it.has_learned is (word == "learned")


def test_a_diverged_run_has_no_mean() -> None:
    runs = [*lane(B, 1.3, 1.3), run(seeded(B, 3)[2], 1e9, "diverged")]
    found = outcome({"A": lane(A, 1.2, 1.2, 1.2), "B": runs}, 3)
    assert found.lanes[1][1] == "learned in 2 of 3 seeds, diverged in 1: loss 1.30"
    (said,) = found.comparisons
    assert "B diverged in 1 of 3 seeds" in said and "on average" not in said


def test_a_loss_that_still_falls_is_named() -> None:
    """By the note and by the verdict."""
    falls = run(B, 1.5, fall=0.02)
    found = outcome({"A": lane(A, 1.2), "B": [falls]})
    assert found.lanes[1][1].startswith("learned: loss 1.") and falls.verdict.falls
    assert found.lanes[1][1].endswith(" of the way to the floor, still falling")
    assert found.notes == (
        "The loss still falls at the end: B. More steps can change what came out.",
    )


def test_a_lane_that_learns_in_some_seeds_warns_of_the_interval() -> None:
    found = outcome({"A": lane(A, 1.2, 1.2, 1.2), "B": lane(B, 1.3, 3.32, 1.3)}, 3)
    assert any(note.startswith("B learns in some seeds only.") for note in found.notes)


def test_lanes_that_are_not_alike_are_not_compared() -> None:
    other = A.replace(task="prose")
    (task,) = outcome({"A": lane(A, 1.2), "B": lane(other, 2.2)}).comparisons
    assert "different tasks" in task
    (seed,) = outcome({"A": lane(A, 1.2), "B": lane(B.replace(init_seed=7), 3.3)}).comparisons
    assert "no seed has a finished run in both" in seed
    (none,) = outcome({"A": lane(A, 1.2), "B": []}).comparisons
    assert "B has no finished run with these settings" in none
    (opened,) = outcome({"A": lane(A, 1.2), "B": [run(B, 3.3, "running")]}).comparisons
    assert "B has no finished run" in opened
    more = outcome({"A": lane(A, 1.2), "B": lane(B.replace(steps=200), 1.3)})
    assert "The lanes have different numbers of steps: A 100, B 200." in more.notes


def test_seeds_that_are_missing_are_counted() -> None:
    found = outcome({"A": lane(A, 1.2, 1.21, 1.22), "B": lane(B, 3.3, 3.3)}, 3)
    assert found.lanes[1][1].endswith("; 1 without a result so far")
    assert "in 2 of 2 seeds" in found.comparisons[0]


def test_several_intervals_are_said_to_be_for_their_own_pairs() -> None:
    lanes = {name: lane(config, 1.2 + i, 1.21 + i, 1.22 + i)
             for i, (name, config) in enumerate({"A": A, "B": B, "C": B}.items())}  # fmt: skip
    found = outcome(lanes, 3)
    assert len(found.comparisons) == 2
    assert found.notes[-1].startswith("Each interval is for one pair of lanes")
    with pytest.raises(ValueError, match="reference is 'D', allowed is one of A, B, C"):
        outcome(lanes, 3, "D")


def test_a_limit_of_the_gradients_is_named_with_its_share_of_the_steps() -> None:
    clipped, never = A.replace(clip=0.5), A.replace(clip=2.0)  # all norms are 1
    found = outcome({"A": lane(A, 1.2), "B": lane(clipped, 1.2), "C": lane(never, 1.2)})
    assert found.notes == (
        "Gradients were clipped in 100% of the steps of B, in 0% of the steps of C.",
    )
