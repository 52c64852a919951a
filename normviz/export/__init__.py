"""A finished duel to take away. Torch-free."""

from .pictures import picture

__all__ = ["picture"]
