"""The Catalogue page: all placements, norms and models as tables, and the anatomy of a placement."""
