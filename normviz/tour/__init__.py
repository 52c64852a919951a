"""The tour: eleven duels in order, each with instructions and its result. Torch-free."""

from .steps import STEPS, Question, Runs, TourStep

__all__ = ["STEPS", "Question", "Runs", "TourStep", "numbered"]


def numbered(word: str) -> int | None:
    """The number of a step, from 1, parsed from a query parameter; None if it is no step."""
    known = {str(n): n for n in range(1, len(STEPS) + 1)}
    return known.get(word)
