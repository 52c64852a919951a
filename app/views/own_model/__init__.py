"""The page Your model: which placement a model of the visitor's own has."""
