"""How it computes: norms, the residual wire, attention, the transformer and its initialisation.

Axes used in comments: B sequences, T positions, D stream width, H heads, L blocks, V vocabulary.
"""
