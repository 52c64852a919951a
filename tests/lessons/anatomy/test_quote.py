"""Quotations of the package's own source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from normviz.lessons.anatomy.quote import Quotation
from normviz.model.batches import markov
from normviz.model.draws import generator


def test_a_quotation_has_all_that_it_uses() -> None:
    quotation = Quotation()
    text = [
        quotation.quote("model/batches.py", "markov"),
        quotation.quote("model/draws.py", "generator"),
    ]
    names: dict[str, Any] = {}
    exec("\n".join([*quotation.imports, *text]), names)
    theirs = names["markov"](names["generator"]("batch", 3, 1), 2, 5)
    for ours, other in zip(markov(generator("batch", 3, 1), 2, 5), theirs, strict=True):
        assert np.array_equal(ours, other)
    assert quotation.quote("model/batches.py", "choices") == "", "it was quoted with markov"


def test_a_name_that_a_file_does_not_have_is_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"model/draws.py has no gamma: it has .*uniform"):
        Quotation().quote("model/draws.py", "gamma")
