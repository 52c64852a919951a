"""The time of a norm on this machine, as a share of LayerNorm's.

    variants -> contexts (the timed calls) -> measure -> result -> stored_results -> findings, chart

Every round times all variants in a new random order. Each is compared with LayerNorm in the same
round, so a slower machine slows both. LayerNorm is measured twice, as a control.
"""
