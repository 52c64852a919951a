"""A visitor's own PyTorch model: its stack of blocks, its norms, and where they stand.

    stack -> norms -> placement -> anatomy -> lint, move

Nothing is read from names: norms are told by what they compute, placements by the flow of data.
"""
