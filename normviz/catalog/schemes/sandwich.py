"""Norms on both sides of each branch."""

from __future__ import annotations

from ..scheme import Place, Scheme, Slots


def norm_on_both_sides(_: Place) -> Slots:
    return Slots(norm_in=True, norm_out=True)


SCHEMES = (
    Scheme(
        key="sandwich",
        label="Sandwich-LN",
        order=40,
        sentence="A norm before and a norm after each branch, before the sum; the stream itself "
        "is not normalised.",
        trouble="At the start every branch adds a full unit of RMS to the stream, whatever the "
        "initialisation.",
        source="Ding et al. 2021 (CogView), arXiv:2105.13290",
        slots=norm_on_both_sides,
        final_norm=True,
    ),
    Scheme(
        key="peri",
        label="Peri-LN",
        order=50,
        sentence="Sandwich-LN with the embedding normalised too: the layout of Gemma 2 and later, "
        "plus the embedding norm.",
        trouble="At the start every branch adds a full unit of RMS to the stream, whatever the "
        "initialisation.",
        source="Kim et al. 2025, arXiv:2502.02732",
        slots=norm_on_both_sides,
        final_norm=True,
        embed_norm=True,
    ),
)
