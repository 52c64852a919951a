"""The registries: every record is complete, and an unknown key gets a sentence that helps."""

from __future__ import annotations

from typing import Any

import pytest
from crossing_kit import case

from normviz import catalog
from normviz.catalog import (
    CONSTRAINTS,
    INITS,
    NORMS,
    PROBES,
    QK_NORMS,
    SCHEMES,
    STREAMS,
    TASKS,
    V_NORMS,
)
from normviz.catalog.inits import BIASES, ROLES
from normviz.catalog.registry import Registry
from normviz.catalog.schemes import classic
from normviz.config import RunConfig
from normviz.lessons.anatomy.code import CONSTRAINTS as CODE
from normviz.lessons.presets import PRESETS
from normviz.model import constraint
from normviz.model.data import TASKS as TASK_CLASSES
from normviz.model.norms import BUILDERS
from normviz.model.qk_norm import QK, V
from normviz.training.probes import INSTRUMENTS

MAY_BE_EMPTY = ("oracle", "warning", "used_by", "code", "last")
REGISTRIES: dict[str, Registry[Any]] = {
    **{name: getattr(catalog, name) for name in catalog.__all__},
    "PRESETS": PRESETS,
}
ALL_REGISTRIES = pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES.keys())


@ALL_REGISTRIES
def test_a_record_can_be_named_in_links_and_read_by_people(registry: Registry[Any]) -> None:
    """It has every text; empty is one where that says "none"."""
    for record in registry:
        with case(record.key):
            assert record.key == record.key.lower()
            assert record.key.isidentifier()
            for field, value in vars(record).items():
                if isinstance(value, str) and field not in MAY_BE_EMPTY:
                    assert value.strip() == value != "", field
            told = getattr(record, "sentence", "") or getattr(record, "definition", "")
            assert told or record.question


def test_every_record_of_science_names_its_source() -> None:
    for registry in (SCHEMES, NORMS, INITS, PROBES):
        assert all(len(record.source) > 5 for record in registry)


def test_schemes_stand_in_their_stated_order() -> None:
    orders = [scheme.order for scheme in SCHEMES]
    assert orders == sorted(set(orders))


def test_the_page_lists_the_usual_things_first() -> None:
    assert SCHEMES.keys()[:2] == ("pre", "post")
    assert NORMS.keys()[0] == RunConfig().norm
    assert TASKS.keys()[0] == RunConfig().task


def test_the_probe_keys_are_pinned() -> None:
    """Links, exports and stored runs use them in this order."""
    assert PROBES.keys() == (
        "grad_block", "grad_w2", "grad_qk", "grad_hidden", "stream_rms",
        "branch_ratio", "update_ratio", "token_cosine", "attn_logit_max", "attn_entropy",
        "stream_max", "stream_max_ratio", "stream_kurtosis", "attn_sink", "branch_cosine",
        "branch_in_rms", "sum_rms", "norm_drift", "normed_rms", "normed_grad", "normed_cosine",
        "summed_rms", "summed_grad", "summed_cosine",
    )  # fmt: skip


def test_a_probe_can_be_drawn() -> None:
    for probe in PROBES:
        low, high = probe.domain
        assert low < high
        assert low > 0 or probe.scale == "linear"
        assert probe.unit in probe.axis_label
        assert probe.axis_label.startswith("1 - ") == (probe.shown == "one_minus")


def test_every_record_has_what_computes_it() -> None:
    assert set(BUILDERS) == set(NORMS.keys())
    assert {scheme.streams for scheme in SCHEMES} == set(STREAMS.keys())
    assert set(QK) == set(QK_NORMS.keys())
    assert set(V) == set(V_NORMS.keys())
    assert set(constraint.RULES) == set(CODE) == set(CONSTRAINTS.keys())
    assert {scheme.constraint for scheme in SCHEMES} == set(CONSTRAINTS.keys())
    for init in INITS:
        named = set(init.draws)
        assert named <= set(ROLES) and set(ROLES) - named <= {*BIASES, "inputs.weight"}
    assert set(TASK_CLASSES) == set(TASKS.keys())
    by_group = [key for keys in INSTRUMENTS for key in keys]
    assert sorted([*by_group, "norm_drift", "update_ratio"]) == sorted(PROBES.keys())


def test_a_preset_is_a_duel_of_different_lanes() -> None:
    for preset in PRESETS:
        lanes = preset.lanes()
        assert 2 <= len(lanes) <= 4
        assert len({lane.key for lane in lanes}) == len(lanes)
        assert preset.question.endswith("?")


@ALL_REGISTRIES
def test_an_unknown_key_names_what_is_allowed(registry: Registry[Any]) -> None:
    with pytest.raises(
        ValueError, match=rf"^unknown {registry.kind} 'zzz': allowed are "
    ) as caught:
        registry["zzz"]
    assert all(key in str(caught.value) for key in registry.keys())  # noqa: SIM118
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("registry", "near", "meant"),
    [
        (SCHEMES, "sandwhich", "sandwich"),
        (SCHEMES, "prr", "pre"),
        (NORMS, "RMSnrm", "rmsnorm"),
        (INITS, "xaviar", "xavier"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_near_miss_gets_a_hint(registry: Registry[Any], near: str, meant: str) -> None:
    assert registry.unknown(near).endswith(f"Did you mean {meant!r}?")


def test_two_records_of_one_key_are_refused() -> None:
    twice = [classic.SCHEMES[0], classic.SCHEMES[0]]
    with pytest.raises(ValueError, match=r"^two scheme records have the key 'pre'$"):
        Registry("scheme", twice)


@ALL_REGISTRIES
def test_a_registry_holds_its_keys_alone(registry: Registry[Any]) -> None:
    assert len(registry) == len(registry.keys()) == len(set(registry.keys()))
    for record in registry:
        assert registry[record.key] is record
        assert registry.label(record.key) == record.label
    assert None not in registry
