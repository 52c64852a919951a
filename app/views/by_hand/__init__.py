"""Norms worked out by hand on a small table."""
