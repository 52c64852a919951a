"""The Catalogue page: all placements, norms and models as tables."""
