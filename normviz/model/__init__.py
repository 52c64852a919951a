"""The model and its data: norms, the residual wire, attention, the transformer, initialisation, tasks.

Axes in docstrings and comments: B sequences, T positions, D stream width, H heads, L blocks, V vocabulary.
"""
