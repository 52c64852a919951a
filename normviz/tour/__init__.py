"""The tour: eight duels in order, each with what to look at and what came out. Torch-free."""

from .step import Question, Runs, Step
from .steps import STEPS

__all__ = ["STEPS", "Question", "Runs", "Step", "numbered"]


def numbered(word: str) -> int | None:
    """The number of a step, from 1, as an address names it; None for anything else."""
    known = {str(n): n for n in range(1, len(STEPS) + 1)}
    return known.get(word)
