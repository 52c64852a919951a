"""All placements and norms as tables."""
