"""Every scheme whose record names an oracle equals it: streams, logits and all gradients."""

from __future__ import annotations

import pytest
from parity_kit import measure
from parity_peers import COMPARISONS
from typer.testing import CliRunner

from normviz.catalog import NORMS, SCHEMES
from normviz.catalog.models import TOLERANCE, differences
from normviz.cli import main
from normviz.cli.parity import NO_ORACLE


@pytest.mark.slow
@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: c.id)
def test_equals_a_public_implementation(comparison) -> None:
    assert measure(comparison) < TOLERANCE


def test_records_name_exactly_the_oracles_that_are_compared() -> None:
    compared = {(c.scheme, c.oracle) for c in COMPARISONS}
    named = {(s.key, name) for s in SCHEMES if s.oracle for name in s.oracle.split("; ")}
    assert len(compared) == len(COMPARISONS)
    assert named == compared


def test_the_shipped_table_is_of_exactly_these_comparisons() -> None:
    table = differences()
    listed = {(scheme, oracle) for scheme, row in table.items() for oracle in row}
    assert listed == {(c.scheme, c.oracle) for c in COMPARISONS}
    assert all(0 <= value < TOLERANCE for row in table.values() for value in row.values())


def test_the_terminal_lists_every_scheme_with_what_it_was_held_against() -> None:
    told = CliRunner().invoke(main, ["list", "--parity"])
    assert told.exit_code == 0
    above, below = told.stdout.split("\nnorm ")
    lines = above.splitlines()
    for norm in NORMS:
        assert any(x.startswith(norm.key) and x.endswith(norm.oracle) for x in below.splitlines())
    for scheme in SCHEMES:
        (line,) = (x for x in lines if x.startswith(f"{scheme.key} "))
        assert (scheme.oracle.split("; ")[0] or NO_ORACLE) in line
        assert "1e-10" in line
