"""The contents of the tour."""
