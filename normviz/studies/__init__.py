"""Questions that take many runs or measurements: maps, claims, labs and the cost of a norm."""
