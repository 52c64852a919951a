"""Norm, placement, final norm and QK-norm of real models, read from their code.

    library -> program (classes of a file) -> run (a layer's forward, on symbols) -> judge -> table

The code of `transformers` is parsed and never executed. Symbolic tensors follow its forward passes:
the residual stream, its norms and its branches. Where the rules do not decide, the table says so.
"""
