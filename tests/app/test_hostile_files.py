"""Hostile files and variables: settings, measurements, the environment. Taken, left out, or told."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_hostile import VALUES, assert_sentence

from normviz import RunConfig, policy
from normviz.cli.run import read_file
from normviz.config import ConfigError
from normviz.export import read_configs
from normviz.home import VARIABLE, FolderError, home
from normviz.runs.store import Store
from normviz.studies.norm_cost import chart, findings, stored_results
from normviz.studies.norm_cost.variants import CONTEXTS

SHIPPED = json.loads(stored_results.SHIPPED.read_text())
WORDS = st.text(max_size=30).map(lambda s: s.replace("\0", "").encode("utf-8", "ignore").decode())


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def told_of(path: Path) -> str | None:
    """What is wrong with a file of settings; None where it is read."""
    try:
        assert read_file(path)
    except ValueError as error:
        assert_sentence(str(error))
        return str(error)
    return None


# Settings


@given(content=st.binary(max_size=200) | WORDS.map(str.encode))
@settings(max_examples=25)
@example(content=b"\xff{}")
@example(content=b'\xef\xbb\xbf{"depth": 3}')
def test_any_bytes_of_a_config_file_are_read_or_told(here: Path, content: bytes) -> None:
    path = here / "a.json"
    path.write_bytes(content)
    told = told_of(path)
    assert (told is None) == (content == b'\xef\xbb\xbf{"depth": 3}')


def test_a_file_that_is_no_text_is_named(here: Path) -> None:
    path = here / "b.json"
    path.write_bytes(b"{\xff")
    assert f"--config {str(path)!r} can't be read: byte 1 is 0xff" in str(told_of(path))
    assert "longer than 1,000,000 bytes" in str(told_of(Path("/dev/zero")))


SHAPES = ("{}", '{{"lr_edits": {}}}', '{{"depth": {}}}', '{{"lanes": {}}}', '{{"config": {}}}',
          '{{"lanes": [{{"config": {{"lr_edits": {}}}}}]}}',
          '{{"config": {{"depth": 3}}, "engine": {}}}')  # fmt: skip


@given(st.integers(1, 2000), st.sampled_from(SHAPES), st.sampled_from(["[]", '{"a":}']))
@settings(max_examples=40)
@example(600, SHAPES[1], "[]")
@example(990, SHAPES[1], "[]")
@example(990, SHAPES[6], "[]")
def test_any_nesting_is_a_sentence(deep: int, shape: str, brackets: str) -> None:
    inner = brackets[:-1] * deep + ("1" if len(brackets) > 2 else "") + brackets[-1] * deep
    try:
        assert read_configs(shape.format(inner)).lanes
    except ValueError as error:
        assert_sentence(str(error))


def test_nested_values_of_a_config_are_a_sentence() -> None:
    for deep in (3, 600, 5000):
        value: Any = ()
        for _ in range(deep):
            value = (value,)
        for name in ("lr_edits", "depth", "scheme", "clip", "qk_norm"):
            with pytest.raises(ConfigError, match=f"{name} is .*, allowed is") as error:
                RunConfig(**{name: value})
            assert_sentence(str(error.value))


def test_a_name_that_is_given_twice_is_refused() -> None:
    for shape in ("{}", '{{"config": {}}}', '{{"lanes": [{{"config": {}}}]}}'):
        with pytest.raises(ValueError, match="the JSON names 'depth' twice in one object"):
            read_configs(shape.format('{"depth": 3, "depth": 96}'))
    with pytest.raises(ValueError, match="twice in one object"):
        read_configs('{"config": {}, "config": {}}')


def test_a_setting_outside_of_the_configs_is_told() -> None:
    for text, names in (
        ('{"config": {"width": 64}, "depth": 96}', "depth"),
        ('{"config": {"width": 64}, "depth": 96, "verdict": "x", "steps": 3}', "depth"),
        ('{"lanes": [{"config": {}, "lr": 1}], "config": {}}', "config, lr"),
    ):
        notices = read_configs(text).notices
        assert any(f"the JSON names {names} outside of the configs" in one for one in notices)
    result = '{"config": {}, "verdict": "", "steps": 3}'
    assert not any("outside" in one for one in read_configs(result).notices)


def test_a_stored_config_that_is_nested_deep_is_no_run(store: Store) -> None:
    run = store.enqueue(RunConfig())
    for deep in (600, 100_000):
        nested = '{"lr_edits": ' + "[" * deep + "]" * deep + "}"
        store.db.connection.execute("UPDATE runs SET config = ?", (nested,))
        assert store.run(run) is None


# The environment


@given(st.sampled_from([policy.SWITCH, policy.STORE]), WORDS | st.integers().map(str))
@settings(max_examples=30)
@example(policy.STORE, "9" * 5000)
@example(policy.STORE, "0" * 5000 + "1")
def test_any_variable_is_taken_or_told(name: str, value: str) -> None:
    with mock.patch.dict(os.environ, {name: value}):
        told = None
        try:
            policy.from_environment()
        except policy.Misconfigured as error:
            told = str(error)
    if told is not None:
        assert_sentence(told)
        assert name in told


PLACES_OF_NONE = ("~nosuchuser/x", "/dev/null/x", f"/{'a' * 300}", "/proc/x")


@given(WORDS | st.sampled_from(PLACES_OF_NONE))
@settings(max_examples=40)
def test_any_data_folder_is_made_or_told(here: Path, value: str) -> None:
    folder = here / "a" / "b" / "c"
    folder.mkdir(parents=True, exist_ok=True)
    if value not in PLACES_OF_NONE:
        value = f"{folder}/{value.replace('..', '')}"
    told = None
    with mock.patch.dict(os.environ, {VARIABLE: value}):
        try:
            assert home().is_dir()
        except FolderError as error:
            told = str(error)
    assert (told is None) == (value not in PLACES_OF_NONE)
    if told is not None:
        assert_sentence(told)
        assert VARIABLE in told or "home folder" in told


# Measurements


def places(found: Any) -> list[tuple[Any, ...]]:
    """The way to everything in nested JSON."""
    if not isinstance(found, dict | list):
        return []
    pairs = found.items() if isinstance(found, dict) else enumerate(found)
    return [
        place for key, value in pairs for place in ((key,), *((key, *p) for p in places(value)))
    ]


PLACES = places({**SHIPPED, "rows": SHIPPED["rows"][:2]})
GONE = object()
NUMBERS = st.sampled_from([0, -1, 10**400, 1e300, float("nan"), float("inf"), 2**63, "9", True])
WHENS = st.sampled_from(
    ["9", "20311203", "2031-01-01", "9999-12-31T23:59:59+00:00", "2031-01-01T00:00:00"]
)


def mutated(place: tuple[Any, ...], value: Any) -> str:
    """The shipped measurement with one thing in it changed, or gone."""
    whole = deepcopy(SHIPPED)
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return json.dumps(whole)


@pytest.mark.slow
@given(st.sampled_from(PLACES), VALUES | NUMBERS | WHENS | st.just(GONE))
@settings(max_examples=40)
@example(("rows",), [])
@example(("rows", 0, "variant"), "gone")
@example(("rows", 0, "bytes"), 10**400)
@example(("when",), "9")
@example(("rounds",), 10**400)
def test_any_measurement_is_told_or_left_out(
    here: Path, place: tuple[Any, ...], value: Any
) -> None:
    path = here / "cost" / "x.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(mutated(place, value))
    for it in stored_results.measurements(here):
        assert findings.verdict(it) and findings.counted(it) and it.text()
        assert all(findings.finding(it, context.key) for context in CONTEXTS)
        assert json.dumps(chart.chart(it, "alone"), allow_nan=False)


def test_the_shipped_measurement_would_be_kept(here: Path) -> None:
    stored_results.keep(stored_results.shipped(), here)
    assert stored_results.shipped() in stored_results.measurements(here)
