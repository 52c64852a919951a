"""`normviz claims`: the list, a record, a run held against what ships, and bad input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cli_kit import normviz

from normviz.links import encode
from normviz.studies.claims import CLAIMS
from normviz.studies.claims.rule import MARKS
from normviz.studies.claims.sentences import ORDER, as_json, by_set, chip
from normviz.studies.claims.stored import (
    finding,
    folder,
    read_result,
    shipped_lanes,
    shipped_result,
    shipped_sets,
)


@pytest.fixture(autouse=True)
def nothing_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read all that ships takes longer than these commands."""
    monkeypatch.setattr("normviz.cli.claims.adopt", lambda store: None)
    monkeypatch.setattr("normviz.cli.claims.shipped.adopt_cells", lambda store: None)


@pytest.mark.slow
def test_the_list_has_every_claim_negative_results_first() -> None:
    said = normviz("claims")
    assert said.exit_code == 0, said.stderr
    heads = [line.split()[0] for line in said.stdout.splitlines() if not line.startswith(" ")]
    assert sorted(heads) == sorted(CLAIMS.keys())
    kinds = [ORDER.index(chip(CLAIMS[key], shipped_result(CLAIMS[key]))) for key in heads]
    assert kinds == sorted(kinds)
    for claim in CLAIMS:
        result = shipped_result(claim)
        assert result is not None
        found = f"{claim.label}: {claim.sentence}\n     found: {finding(claim, result)}\n"
        assert f"{chip(claim, result):20} {found}" in said.stdout


def test_a_record_is_shown_with_rule_command_and_duel() -> None:
    said = normviz("claims", "show", "c6")
    assert said.exit_code == 0, said.stderr
    for words in ("arXiv:2203.00555", "arm      DeepNorm: scheme=deepnorm", "rule     DeepNorm: one SGD step",
                  "run it   normviz claims run C6",
                  f"its duel ?{encode(shipped_lanes(CLAIMS['C6']))}"):  # fmt: skip
        assert words in said.stdout


@pytest.mark.slow
def test_a_claim_is_run_and_held_against_what_ships(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    words = ("--data", str(tmp_path / "data"), "--out", str(out))
    said = normviz("claims", "run", "M2", "E15", "--seeds", "1", *words)
    assert said.exit_code == 0, said.stderr
    assert re.search(r"2 claims, at most about \d+ s in \d+ process", said.stderr)
    assert "E15: 3 runs, at most about" in said.stderr
    assert "1 of 2 claims, about" in said.stderr
    assert "2 of 2 claims" not in said.stderr and "took" in said.stderr
    assert "verdict  contradicted (1 of 3 parts true, 2 false)" in said.stdout
    assert "         ✗ Pre-LN has 192: false (193)" in said.stdout
    assert "shipped  the same outcomes" in said.stdout
    assert read_result(out / "E15.json").numbers["pre"] == [193.0]
    assert (out / "M2.json").exists()


def test_a_check_on_other_seeds_lists_what_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--data", str(tmp_path))
    said = normviz("claims", "check", "M2", *words)
    assert said.exit_code == 0, said.stderr
    assert said.stdout == (
        "1 claims from seed 200 on: 1 with the same outcome in every part, 0 with the same verdict and "
        "another part, 0 with another verdict; parts that were true and are false, or the reverse: 0\n"
    )
    ships = shipped_result(CLAIMS["E15"])
    assert ships is not None
    other = replace(ships, numbers={**ships.numbers, "pre": [192.0] * 5})
    monkeypatch.setattr("normviz.cli.claims.shipped_result", lambda _: other)
    monkeypatch.setattr("normviz.cli.claims.followed", lambda *_: [(CLAIMS["E15"], ships)])
    (changed,) = json.loads(normviz("claims", "check", "E15", *words, "--json").stdout)
    assert (changed["claim"], changed["shipped"], changed["now"]) == ("E15",) + (
        "contradicted",
    ) * 2
    (part,) = changed["parts"]
    assert (part["says"], part["shipped"], part["now"]) == ("Pre-LN has 192", "true", "false")
    assert part["was"].startswith("192") and part["evidence"].startswith("193")
    printed = normviz("claims", "check", "E15", *words).stdout
    assert f"Pre-LN has 192: true ({part['was']}) -> false ({part['evidence']})" in printed


@pytest.mark.slow
def test_terminal_and_json_agree_on_every_claim() -> None:
    """What `claims show` prints of each claim, and what JSON gives."""
    shown = normviz("claims", "show", "all").stdout.split("run it   ")
    for claim, text in zip(CLAIMS, shown, strict=False):
        result = shipped_result(claim)
        assert result is not None
        one, lines = as_json(claim, result, shipped_sets(claim)), text.splitlines()
        assert any(line.startswith(f"verdict  {one['verdict']}") for line in lines)
        assert f"({one['basis']})" in text and claim.sentence == one["sentence"]
        parts = [
            f"{'Control: ' * it['control']}{it['says']}: {it['outcome']} ({it['evidence']})"
            for it in one["parts"]
        ]
        told = [line[11:] for line in lines if line[9:10] in MARKS.values()]
        assert [line.replace("false, worse by more", "false") for line in told] == parts
        if claim.arms:
            assert f"sets     {one['by_set']}" in lines
            assert {len(it["values"]) for it in one["numbers"].values()} == {len(one["seeds"])}


def test_json_has_numbers_seeds_and_the_duel_of_each_point() -> None:
    (found,) = json.loads(normviz("claims", "show", "X3", "--json").stdout)
    result = shipped_result(CLAIMS["X3"])
    assert result is not None
    assert found["numbers"]["post4"]["values"] == result.numbers["post4"]
    assert found["seeds"] == [*range(3), *range(100, 103)] and found["scope"] == CLAIMS["X3"].scope
    assert [(it["y"], it["seed"]) for it in found["points"][:5]] == [
        (y, seed) for seed, y in zip((0, 1, 2, 100, 101), result.numbers["post"], strict=False)
    ]
    assert all(it["link"].startswith("./?v=1&") for it in found["points"])


def test_the_check_that_ships_is_the_list_of_the_document() -> None:
    said = normviz("claims", "check")
    assert said.exit_code == 0, said.stderr
    document = (folder() / "README.md").read_text()
    assert f"```text\n{said.stdout}```" in document


def test_what_each_set_of_seeds_says_alone_is_told_part_by_part() -> None:
    claim, sets = CLAIMS["E15"], shipped_sets(CLAIMS["E15"])
    other = replace(sets[1], numbers={**sets[1].numbers, "pre": [192.0] * 5})
    assert by_set(claim, [sets[0], other]) == (
        "Each set of seeds alone (0 to 4, 100 to 104). Pre-LN has 192: false and true, together undecided"
    )
    assert by_set(claim, sets) == (
        "Each set of seeds alone (0 to 4, 100 to 104) has the same outcome in every part"
    )
    assert by_set(claim, sets[:1]) == "One set of seeds was run"


@pytest.mark.slow
def test_results_are_written_to_ship_and_those_of_a_second_set_of_seeds_apart(
    tmp_path: Path,
) -> None:
    words = ("ship-claims", "M2", "--data", str(tmp_path / "data"), "--folder", str(tmp_path))
    said = normviz(*words, "--seeds-from", "100")
    assert said.exit_code == 0, said.stderr
    second = read_result(tmp_path / "second" / "M2.json")
    assert (second.first, second.figure, second.runs) == (100, [], [])
    assert not (tmp_path / "M2.json").exists() and not (tmp_path / "runs.npz").exists()
    said = normviz(*words)
    assert said.exit_code == 0, said.stderr
    assert said.stdout.startswith("M2: ")
    assert read_result(tmp_path / "M2.json").verdict(CLAIMS["M2"]) == second.verdict(CLAIMS["M2"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "C99"), "unknown claim 'C99'"),
        (("run", "E15", "--out", "/nowhere"), "--out names the folder '/nowhere', which does not"),
    ],
)
def test_bad_input_gets_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    said = normviz("claims", *words)
    assert said.exit_code == 2
    assert said.stderr.startswith(f"normviz: {sentence}")
    assert said.stderr.count("\n") == 1
