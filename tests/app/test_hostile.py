"""Hostile input to what reads it: a valid value or one sentence comes out, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cli_kit import normviz
from crossing_kit import case
from hostile_kit import NAMES, SCRIPTS, STRANGE, link, word
from hypothesis import example, given, settings
from hypothesis import strategies as st
from normviz.app.session import duel_link

from normviz.config import RANGES, ConfigError, RunConfig
from normviz.export import read_configs
from normviz.lessons.by_hand import HandError, matrix, number
from normviz.lessons.by_hand import links as hand
from normviz.links import FIELDS, decode
from normviz.links import settings as words_of
from normviz.model import texts as kept
from normviz.model.characters import TextError
from normviz.own_model.client import check
from normviz.own_model.source import parse_config
from normviz.runs.search import search
from normviz.runs.store import Query, Store
from normviz.studies.maps import link as map_link
from normviz.studies.maps.grid import SweepError
from normviz.studies.norm_cost.result import CostSetting

LONGEST = 1500
ANY = st.sampled_from(STRANGE + SCRIPTS) | st.text(max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
HUGE = ("9" * 1_000_000, "a" * 1_000_000, "[" * 1_000_000, "," * 1_000_000, "1:1;" * 250_000)


def assert_sentence(text: str) -> None:
    """One, of a readable length, that says more than what it is called in Python."""
    assert 10 < len(text) <= LONGEST, text[:200]
    assert "\n" not in text and "Traceback" not in text and "Error(" not in text
    assert "maximum recursion" not in text


@pytest.mark.slow
@given(st.integers(0, 10**9))
@settings(max_examples=150)
def test_every_link_is_taken_or_told(seed: int) -> None:
    params = link(Random(seed))
    duel, table = decode(params), hand.decode(params)
    assert bool(duel.lanes) != bool(duel.problems)
    assert (table.example is None) == bool(table.problems)
    for problem in (*duel.problems, *table.problems):
        assert_sentence(problem.sentence)
    for notice in (
        *table.notices,
        *map_link.CODEC.others(params),
        *duel_link.decode(params).notices,
    ):
        assert_sentence(notice)
    try:
        map_link.decode(params)
    except (ConfigError, SweepError) as error:
        assert_sentence(str(error))


@given(st.integers(0, 10**9))
@settings(max_examples=150)
def test_no_value_of_a_link_is_changed_silently(seed: int) -> None:
    random = Random(seed)
    name = random.choice(tuple(RANGES))
    given_ = word(random, name)
    for lane in decode({name: [given_]}).lanes if "," not in given_ else ():
        value = getattr(lane, name)
        assert given_.strip() in ("off", "none") if value is None else float(given_) == value


@pytest.mark.slow
def test_a_megabyte_in_any_parameter_is_a_sentence() -> None:
    for n, name in enumerate(NAMES[::12]):
        huge = HUGE[n % len(HUGE)]
        params = {"v": ["1"], name: [huge]}
        for found in (decode(params), hand.decode(params)):
            for told in (*(p.sentence for p in found.problems), *found.notices):
                assert_sentence(told)
        try:
            map_link.decode(params)
        except (ConfigError, SweepError) as error:
            assert_sentence(str(error))


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=6), VALUES, max_size=4))
@settings(max_examples=40)
@example({"lr_edits": [[1, 0.1]] * 3})
@example({"depth": True})
@example({"depth": 10**400})
@pytest.mark.slow
def test_any_json_is_a_config_or_a_sentence(values: dict[str, Any]) -> None:
    try:
        config = RunConfig(**values)
    except ConfigError as error:
        assert_sentence(str(error))
        return
    assert RunConfig(**json.loads(config.canonical())) == config


@given(VALUES | st.dictionaries(st.sampled_from(["lanes", "format", "version"]), VALUES))
@settings(max_examples=25)
@example({"lanes": [{"depth": "3"}, None]})
@pytest.mark.slow
def test_any_file_of_settings_is_read_or_told(content: Any) -> None:
    text = json.dumps(content)
    for given_ in (text, text[: len(text) // 2], "[" * 100_000):
        try:
            read_configs(given_)
        except ValueError as error:
            assert_sentence(str(error))


NESTED = [*range(10, 1050, 80), 2000, 10_000, 100_000]


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nested_json_is_read_or_told(opens: str, closes: str) -> None:
    """A pasted config.json, one in a file, and settings; at any depth."""
    for depth in NESTED:
        deep = f"{opens * depth}1{closes * depth}"
        for read, text in (
            (check, f'{{"model_type": "llama", "x": {deep}}}'),
            (parse_config, f'{{"model_type": "llama", "x": {deep}}}'),
            (read_configs, f'{{"depth": {deep}}}'),
            (read_configs, f'{{"lanes": [{{"config": {{"lr_edits": {deep}}}}}]}}'),
        ):
            with case(f"{depth} {read.__name__}"):
                try:
                    read(text)
                except ValueError as error:
                    assert_sentence(str(error))


@given(ANY, st.sampled_from(["", "row 1"]))
@settings(max_examples=40)
def test_a_cell_is_a_number_or_a_sentence(text: str, where: str) -> None:
    for read in (lambda: number(text, where or "eps"), lambda: matrix(text)):
        try:
            read()
        except HandError as error:
            assert_sentence(str(error))


@given(st.text(max_size=60) | ANY)
@settings(max_examples=40)
def test_any_search_finds_runs_or_says_what_is_unknown(text: str) -> None:
    found = search(text)
    store = _store()
    assert store.listed(Query(found.clauses), 5).total <= (not found.unknown)
    assert store.db.connection.execute("SELECT COUNT(*) FROM runs").fetchone()[0] == 1


def _store(made: dict[str, Store] = {}) -> Store:  # noqa: B006 (one for all examples)
    if "it" not in made:
        made["it"] = Store()
        made["it"].end(made["it"].enqueue(RunConfig(depth=999, width=4, heads=1)), "stopped")
        made["it"].db.connection.execute(
            "UPDATE runs SET key = 'e0-0', config = '{}', status = 'x'"
        )
    return made["it"]


@given(st.binary(max_size=3000) | ANY)
@settings(max_examples=25)
@example(b"\xff\xfe" + "x".encode("utf-16-le") * 500)
@example("\u202e" * 2000)
@example("\0" * 2000)
@example("<script>" * 200)
def test_any_text_is_kept_under_its_hash_or_told(given_: bytes | str) -> None:
    before = _everything()
    try:
        key = kept.add(given_)
    except TextError as error:
        assert_sentence(str(error))
        assert _everything() == before
        return
    assert _everything() - before <= {f"texts/{key}.txt", "texts"}
    assert kept.about(key).characters > 0
    kept.delete(key)


def _everything() -> set[str]:
    home = Path(os.environ["NORMVIZ_HOME"])
    return {str(path.relative_to(home)) for path in home.rglob("*")}


@given(st.fixed_dictionaries({}, optional={
    name: st.integers() | st.floats() | st.booleans()
    for name in ("width", "tokens", "threads", "seconds")
} | {"device": ANY}))  # fmt: skip
@settings(max_examples=40)
def test_a_measurement_of_anything_is_allowed_or_told(values: dict[str, Any]) -> None:
    try:
        CostSetting(**values)
    except ValueError as error:
        assert_sentence(str(error))


COMMANDS = (["run"], ["runs"], ["sweep"], ["export"], ["claims", "run"])


@given(st.sampled_from(COMMANDS), st.lists(
    st.sampled_from([s for s in STRANGE + SCRIPTS if "\0" not in s]) | st.sampled_from(FIELDS).flatmap(
        lambda name: st.sampled_from([s for s in STRANGE + SCRIPTS if "\0" not in s]).map(
            lambda value: f"{name}={value}")), min_size=1, max_size=3))  # fmt: skip
@settings(max_examples=8)
@pytest.mark.slow
def test_any_command_line_is_a_sentence(command: list[str], words: list[str]) -> None:
    """Where nothing would be trained: a first word that is no setting stops every command."""
    # Options are tried in test_hostile_terminal.
    done = normviz(*command, "depth=0", *words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in (0, 2)
    assert "Traceback" not in done.output


def test_bytes_that_are_no_text_reach_a_command_as_words() -> None:
    command = [sys.executable, "-m", "normviz", "run", b"?v=1&depth=0&lr=\xff\xfe"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 2 and b"Traceback" not in done.stderr


def test_a_word_of_a_setting_that_is_no_text_is_told() -> None:
    with pytest.raises(ConfigError) as told:
        RunConfig(**words_of(["lr=\udcff"]))
    assert_sentence(str(told.value))
