"""RunConfig: bad values get one sentence, and equal configs have one name that never moves."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import pytest
from crossing_kit import BESIDE, case, others

from normviz import ConfigError, RunConfig
from normviz.catalog.setting import Spot
from normviz.config import (
    CHOICES,
    DEFAULTS,
    LONGEST_LIST,
    RANGES,
    SETTINGS,
    WRITTEN,
    estimated_gib,
    estimated_seconds,
    summary,
)
from normviz.lessons.presets import PRESETS
from normviz.limits import MAX_GIB, MAX_MINUTES

FIELDS = tuple(SETTINGS)
CHEAP = {"depth": 1, "width": 64, "heads": 1, "ffn_ratio": 1, "seq_len": 2, "batch": 1, "steps": 1}


def bad_numbers(name: str) -> list[Any]:
    """Below, above, not a number, not finite, and everything that only looks like a number."""
    span = RANGES[name]
    bad: list[Any] = [span.low - 1, span.high + 1, math.nan, math.inf, -math.inf, "nan", "-inf"]
    bad += [span.low] * span.above + [span.high] * span.below + [1.5] * span.whole
    return [*bad, "three", [], {}, True, False] + ([] if SETTINGS[name].off else ["", None])


BAD = [(name, value) for name in RANGES for value in bad_numbers(name)]
BAD += [(name, value) for name in CHOICES for value in ("", "nonsense", 3, None, [], math.nan)]
BAD += [(name, True) for name in CHOICES if name not in ("qk_norm", "v_norm", "sinks", "tied")]
BAD += [("text", value) for value in ("x", 3, None, "0" * 31, "A" * 32, "../" + "0" * 29)]
BAD += [
    ("lr_edits", value)
    for value in (
        "x", 3, None, ((0, 0.1),), ((1, 0.0),), ((1, 11.0),), ((1, math.nan),), ((1,),),
        ((1, 0.1, 2),), ((1.5, 0.1),), ((1, True),), ((True, 0.1),),
    )
]  # fmt: skip


def test_a_bad_value_gets_one_sentence() -> None:
    for name, value in BAD:
        with case(name, repr(value)):
            with pytest.raises(ConfigError) as caught:
                RunConfig(**{name: value})
            sentence, given = str(caught.value), caught.value.given
            allowed = SETTINGS[name].allowed()
            if len(allowed) > LONGEST_LIST and "Did you mean" in sentence:
                allowed = f"one of {len(CHOICES[name])} ("
            assert sentence.startswith(f"{name} is {given!r}, allowed is {allowed}")
            assert "\n" not in sentence
            assert caught.value.field == name
            assert repr(given) in repr(value)  # the value itself, or the part of a list that is bad
    assert {name for name, _ in BAD} == set(FIELDS)


def test_a_record_allows_what_it_names() -> None:
    for name, setting in SETTINGS.items():
        with case(name):
            kinds = (setting.range, setting.choices, setting.form or None)
            assert sum(kind is not None for kind in kinds) == 1
            assert DEFAULTS[name] in setting
            assert all(value in setting for value in setting.tape)
            assert {*setting.code} <= {*get_args(Spot)}
            assert setting.range is None or setting.axis
            for word in setting.axis.split(",") if setting.axis else ():
                assert getattr(RunConfig(**{name: word}), name) in setting


def test_long_values_are_quoted_short() -> None:
    for value in ("x" * 10_000, 10**400, 10**5000):
        with pytest.raises(ConfigError, match=r"^depth is .*\.\.\., allowed is") as caught:
            RunConfig(depth=value)
        assert len(str(caught.value)) < 200


def test_a_near_miss_gets_a_hint() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean 'post'\?$"):
        RunConfig(scheme="psot")


def test_an_unknown_setting_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"^unknown setting 'depht': known settings are scheme,"):
        RunConfig(depht=3)


def test_the_ends_of_a_range_are_legal() -> None:
    for name, span in RANGES.items():
        for end in [span.low] * (not span.above) + [span.high] * (not span.below):
            changes = {**CHEAP, name: int(end) if span.whole else end}
            changes |= {"depth": int(end)} if name == "loops" else {}
            assert getattr(RunConfig(**changes), name) == end


def test_words_of_links_and_terminals_are_read() -> None:
    for field, given, value in (
        ("depth", "24", 24), ("lr", "1e-3", 1e-3), ("clip", "off", None), ("clip", "0.5", 0.5),
        ("qk_norm", True, "on"), ("qk_norm", False, "off"), ("v_norm", True, "on"), ("dropout", -0.0, 0.0),
    ):  # fmt: skip
        assert repr(getattr(RunConfig(**{field: given}), field)) == repr(value)


TOGETHER = (
    ({"heads": 5}, "width is 32 and heads is 5, but the heads must divide the width"),
    ({"task": "copy", "seq_len": 7}, "seq_len is 7, but the copy task needs an even"),
    (
        {"task": "text"},
        "task is text, but no text is named: paste one on the page, or give --te",
    ),
    (
        {"text": "0" * 32},
        "text is '0{32}', but task is markov, and only the task text reads one",
    ),
    (
        {"mask": "none"},
        "mask is none and task is markov, but without a mask each position sees",
    ),
    (
        {"positions": "rope", "width": 12},
        "positions is rope and each of 4 heads has 3 channels, but RoPE rotates pairs",
    ),
    (
        {"rounding": "bf16", "scheme": "hyper"},
        "rounding is bf16 and scheme is hyper, but rounding is defined for placements with one",
    ),
    (
        {"branch_gain": 2, "scheme": "hyper"},
        "branch_gain is 2 and scheme is hyper, but it is defined where a branch is added",
    ),
    (
        {"branch_gain": 2, "scheme": "ngpt"},
        "branch_gain is 2 and scheme is ngpt, but it is defined where a branch is added",
    ),
    ({"loops": 5}, "loops is 5 and depth is 12, but each pass has depth / loops blocks"),
    (
        {"loops": 2, "scheme": "mixln"},
        "loops is 2 and scheme is mixln, but passes share blocks that are alike and have one stream",
    ),
    (
        {"loops": 2, "qk_clip": 3},
        ".*, but each pass has a largest logit of its own: choose loops=1",
    ),
    (
        {"qk_clip": 3, "scheme": "ngpt"},
        "qk_clip is 3 and scheme is ngpt, but it shrinks the matrices of queries and keys",
    ),
    (
        {"qk_clip": 3, "qk_norm": "head"},
        "qk_clip is 3 and qk_norm is head, .* there: choose qk_norm=off or qk_clip=off",
    ),
    (
        {"weight_gain": 2, "scheme": "ngpt"},
        "weight_gain is 2 and scheme is ngpt, but its weights have a length of their own",
    ),
    (
        {"parametrisation": "mup", "optimizer": "muon"},
        "parametrisation is mup and optimizer is muon, but its rates are those of Adam",
    ),
    (
        {"parametrisation": "mup", "norm": "gatednorm"},
        "parametrisation is mup and norm is gatednorm, but it has no rates for the 2 matrices",
    ),
    (
        {"parametrisation": "completep", "scheme": "ngpt"},
        "parametrisation is completep and scheme is ngpt, but it is defined where a branch is",
    ),
    (
        {"parametrisation": "completep", "scheme": "completep"},
        "parametrisation is completep and scheme is completep, and both divide each branch",
    ),
    ({"lr_edits": ((5, 0.1), (3, 0.2))}, "lr_edits must name each step once, in ascending"),
    ({"lr_edits": ((5, 0.1), (5, 0.2))}, "lr_edits must name each step once, in ascending"),
    ({"depth": 1000, "steps": 20_000}, "this run would take about .* minutes of one CPU core"),
    ({"depth": 1000, "width": 1024, "steps": 0}, "this run would take about .* GiB of memory"),
)


def test_values_that_do_not_go_together_get_a_sentence() -> None:
    for given, words in TOGETHER:
        with case(given):
            with pytest.raises(ConfigError, match=f"^{words}") as caught:
                RunConfig(**given)
            assert caught.value.field is None


# The budget


def test_more_of_anything_is_estimated_to_cost_more() -> None:
    base = RunConfig()
    for name in ("depth", "width", "ffn_ratio", "seq_len", "batch", "steps"):
        more = base.replace(**{name: 2 * getattr(base, name)})
        assert estimated_seconds(more) > estimated_seconds(base)
        assert estimated_gib(more) > estimated_gib(base) or name == "steps"


def test_muon_is_estimated_to_cost_what_it_takes() -> None:
    """Measured on a development CPU: a step of 1.9 times AdamW's at the hero's size, 4.9 at width 128."""
    for width, least, most in ((32, 1.3, 2.5), (128, 2.2, 6.0)):
        adamw, muon = (
            estimated_seconds(RunConfig(width=width, optimizer=optimizer), "tape")
            for optimizer in ("adamw", "muon")
        )
        assert least < muon / adamw < most


def test_the_hero_and_a_thousand_blocks_are_affordable() -> None:
    for config in (RunConfig(), RunConfig(depth=1000, steps=100)):
        assert estimated_seconds(config) < 60 * MAX_MINUTES
        assert estimated_gib(config) < MAX_GIB


def test_the_limits_are_stated() -> None:
    for word in ("depth 1 to 1000", "width 4 to 1024", "20,000 steps", "4 lanes", "30 minutes"):
        assert word in summary()


# Names


def changed(name: str) -> RunConfig:
    """The default config with another value of one field."""
    return RunConfig(**{name: others(name)[0], **BESIDE.get(name, {})})


def test_every_field_is_part_of_the_name_and_of_canonical_json() -> None:
    for name in FIELDS:
        with case(name):
            other = changed(name)
            assert other.key != RunConfig().key and other != RunConfig()
            text = other.canonical()
            assert RunConfig(**json.loads(text)) == other
            others = {it for it in FIELDS if getattr(other, it) != DEFAULTS[it]}
            assert list(json.loads(text)) == sorted({*WRITTEN} | others)
            assert " " not in text


def test_the_name_of_the_hero_is_pinned() -> None:
    """Links, shipped runs and stored runs are found by it. If results changed, raise ENGINE."""
    assert RunConfig().key == "e2-a4f6321d1ac5099a"


def test_configs_without_later_settings_are_written_as_ever() -> None:
    """As releases wrote them that did not know these settings."""
    for lane in (lane for preset in PRESETS for lane in preset.lanes()):
        if any(getattr(lane, name) != DEFAULTS[name] for name in {*FIELDS} - {*WRITTEN}):
            continue
        values = {name: getattr(lane, name) for name in WRITTEN}
        assert lane.canonical() == json.dumps(values, sort_keys=True, separators=(",", ":"))
        assert lane.replace(text="none") == lane == RunConfig(**values)


def test_equal_configs_have_one_name() -> None:
    assert RunConfig(lr=0.003, depth="12", weight_decay=-0.0).key == RunConfig(depth=12.0).key


def test_frozen() -> None:
    config = RunConfig()
    with pytest.raises(ValueError, match="frozen"):
        config.depth = 3
    assert hash(config) == hash(RunConfig())


def test_replace_validates() -> None:
    assert RunConfig().replace(depth=3).depth == 3
    with pytest.raises(ConfigError, match=r"^depth is 0, allowed"):
        RunConfig().replace(depth=0)
