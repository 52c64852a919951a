"""The pairs that stand for all pairs of a scheme and another setting."""

from __future__ import annotations

from itertools import product

import pytest
from crossing_kit import ATTENTION_KINDS, NORM_KINDS, SPECIAL, case, with_schemes

from normviz.catalog import NORMS, QK_NORMS, SCHEMES, STREAMS, V_NORMS


@pytest.mark.parametrize("kinds", [NORM_KINDS, ATTENTION_KINDS], ids=["norms", "attention"])
def test_every_scheme_meets_every_kind_and_every_option_every_kind_of_stream(kinds) -> None:
    pairs = with_schemes(kinds)
    assert len(pairs) == len(set(pairs))
    for scheme, kind in product(SCHEMES.keys(), kinds):
        assert any((scheme, option) in pairs for option in kind), (scheme, kind)
    options = [option for kind in kinds for option in kind]
    met = {(SCHEMES[scheme].streams, option) for scheme, option in pairs}
    assert met == {*product(STREAMS.keys(), options)}


def test_the_kinds_hold_every_norm() -> None:
    assert sorted(key for kind in NORM_KINDS for key in kind) == sorted(NORMS.keys())
    attention = product(QK_NORMS.keys(), V_NORMS.keys())
    assert sorted(pair for kind in ATTENTION_KINDS for pair in kind) == sorted(attention)


def test_a_special_scheme_is_one_of_each_kind_of_slot() -> None:
    assert {"ngpt", "subln", "hybridnorm", "normformer", "parallel", "lns_learned", "dssn"} <= {
        *SPECIAL
    }


def test_what_fails_in_a_case_names_it() -> None:
    with pytest.raises(AssertionError) as failed, case("pre", 12):
        raise AssertionError
    assert failed.value.__notes__ == ["in the case of pre 12"]
