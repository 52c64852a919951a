"""The By hand page: norms worked out by hand on a small table."""
