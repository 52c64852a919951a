"""Who uses what: norm, placement, final norm and QK-norm of real models, read from their code.

    library -> program (classes of a file) -> run (a layer's forward, on symbols) -> judge -> table

Nothing is typed from memory and nothing is executed: the code of `transformers` is parsed, and its
forward passes are followed on symbols for the stream, its norms and its branches. Where that decides
nothing, the table says so.
"""
