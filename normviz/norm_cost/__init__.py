"""The norm cost lab: what a norm costs on this machine, as a share of LayerNorm's time.

    setting -> contexts (variants, modules) -> timing + counts -> result -> shelf -> told, charts

Variants take turns in every round, in an order that changes, and each is compared with LayerNorm in
the same round: what slows the whole machine down slows both. LayerNorm runs twice, as a control.
"""
