"""What real models use: the shipped table is what readers read and what the flow of data makes again.

The expectations were written by reading the layers, attentions and final norms of transformers
5.23.0, not from what a program says.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from cli_kit import normviz
from crossing_kit import case

from normviz.catalog import NORMS, QK_NORMS, SCHEMES
from normviz.catalog.models import (
    CODE,
    DATA_FLOW,
    FIELDS,
    OTHERS,
    TABLE,
    TITLES,
    Model,
)
from normviz.catalog.models import census as shipped
from normviz.catalog.models import parse_census as read_back
from normviz.charts.census import finding, totals, years
from normviz.cli.inspect import quiet
from normviz.own_model import census, library
from normviz.own_model.anatomy import inspect_config, inspect_named
from normviz.own_model.shipped import anatomies

READ = {
    # placement, norm, final norm, QK-norm
    "gpt2": ("pre", "layernorm", "yes", "none"),
    "llama": ("pre", "rmsnorm", "yes", "none"),
    "llama4_text": ("pre", "rmsnorm", "yes", "head"),
    "mistral": ("pre", "rmsnorm", "yes", "none"),
    "mixtral": ("pre", "rmsnorm", "yes", "none"),
    "gemma": ("pre", "rmsnorm_1p", "yes", "none"),
    "gemma2": ("sandwich", "rmsnorm_1p", "yes", "none"),
    "gemma3_text": ("sandwich", "rmsnorm_1p", "yes", "head"),
    "olmo": ("pre", "layernorm_nonparam", "yes", "none"),
    "olmo2": ("resp", "rmsnorm", "yes", "full"),
    "olmo3": ("resp", "rmsnorm", "yes", "full"),
    "qwen2": ("pre", "rmsnorm", "yes", "none"),
    "qwen3": ("pre", "rmsnorm", "yes", "head"),
    "phi": ("parallel", "layernorm", "yes", "none"),
    "phi3": ("pre", "rmsnorm", "yes", "none"),
    "gpt_neox": ("parallel_two", "layernorm", "yes", "none"),
    "gptj": ("parallel", "layernorm", "yes", "none"),
    "falcon": ("parallel", "layernorm", "yes", "none"),
    "mpt": ("pre", "layernorm_nobias", "yes", "none"),
    "bloom": ("pre", "layernorm", "yes", "none"),
    "opt": ("pre", "layernorm", "yes", "none"),
    "bert": ("post", "layernorm", "no", "none"),
    "roberta": ("post", "layernorm", "no", "none"),
    "t5": ("pre", "rmsnorm", "yes", "none"),
    "cohere": ("parallel", "layernorm_nobias", "yes", "none"),
    "cohere2": ("parallel", "layernorm_nobias", "yes", "none"),
    "stablelm": ("pre", "layernorm", "yes", "none"),
    "starcoder2": ("pre", "layernorm", "yes", "none"),
    "glm": ("pre", "rmsnorm", "yes", "none"),
    "glm4": ("sandwich", "rmsnorm", "yes", "none"),
    "nanochat": ("pre", "rmsnorm_noaffine", "yes", "head"),
    "dbrx": ("pre", "layernorm_nobias", "yes", "none"),
    "longt5": ("pre", "rmsnorm", "yes", "none"),
    "jamba": ("pre", "rmsnorm", "yes", "none"),
    "qwen3_next": ("pre", "rmsnorm_1p", "yes", "head"),
    "lfm2": ("pre", "rmsnorm", "yes", "head"),
    "bamba": ("pre", "rmsnorm", "yes", "none"),
    "granitemoehybrid": ("pre", "rmsnorm", "yes", "none"),
    "falcon_h1": ("pre", "rmsnorm", "yes", "none"),
    "olmo_hybrid": ("resp", "rmsnorm", "yes", "full"),
    "gpt_neox_japanese": ("pre", "layernorm", "yes", "none"),
    "perceiver": ("pre", "layernorm", "no", "none"),
    "xlm": ("post", "layernorm", "no", "none"),
    "flaubert": ("post", "layernorm", "no", "none"),
    "squeezebert": ("post", "layernorm", "no", "none"),
    "ibert": ("post", "layernorm", "no", "none"),
    "luke": ("post", "layernorm", "no", "none"),
    "xlstm": ("pre", "rmsnorm", "yes", "none"),
    "beam": ("sandwich", "rmsnorm", "yes", "head"),
    "gemma4_text": ("sandwich", "rmsnorm", "yes", "head"),
    "vit": ("pre", "layernorm", "yes", "none"),
    "beit": ("pre", "layernorm", "no", "none"),
    "swin": ("pre", "layernorm", "yes", "none"),
    "swinv2": ("resp", "layernorm", "yes", "none"),
    "dinov2": ("pre", "layernorm", "yes", "none"),
    "siglip": ("pre", "layernorm", "yes", "none"),
    "clip": ("pre", "layernorm", "yes", "none"),
    "whisper": ("pre", "layernorm", "yes", "none"),
    "wav2vec2": ("post", "layernorm", "no", "none"),
    "imagegpt": ("pre", "rmsnorm", "yes", "none"),
}
EMBEDDING = {
    "yes": (
        "bert", "albert", "bart", "bloom", "electra", "flaubert", "modernbert", "nanochat", "trocr",
        "swin", "xlm",
    ),
    "no": (
        "gpt2", "llama", "t5", "gemma2", "gemma3_text", "glm4", "opt", "olmo2", "marian", "xlnet",
        "openai-gpt", "gpt_neox", "vit",
    ),
}  # fmt: skip
OPEN = (
    "doge", "gemma3n_text", "hy_v4", "inkling2_text", "longcat_flash", "mobilebert", "neomme",
    "qwen4_exp", "reformer", "zamba", "zamba2", "zaya",
)  # fmt: skip
"""Blocks with streams that are mixed or scaled by vectors, delayed branches, bottlenecks, or layers
inside layers: no placement of the catalogue."""
SWITCHES = {
    "opt": (
        "do_layer_norm_before=False: placement Post-LN and final norm no",
        {"placement": "post", "final_norm": "no"},
    ),
    "stablelm": (
        "use_parallel_residual=True: placement Parallel, one norm", {"placement": "parallel"},
    ),
    "phi": ("qk_layernorm=True: QK-norm per head", {"qk_norm": "head"}),
}  # fmt: skip
"""Remarks of rows, and what the flow of data then tells otherwise."""


def rows(model: str) -> list[Model]:
    return [row for row in shipped().all if row.model == model]


def named(model: str) -> Model:
    return rows(model)[0]


def drawn(count: int) -> list[str]:
    """Model types of rows told by data flow, drawn by a hash of their names: all take two minutes."""
    types = {row.model for row in shipped().all if row.told == DATA_FLOW}
    return sorted(types, key=lambda name: sha256(name.encode()).digest())[:count]


@pytest.mark.slow
@pytest.mark.parametrize("model", drawn(4))
def test_the_flow_of_data_makes_its_rows_again(model: str) -> None:
    """Every answer but those that a row has from the code. `normviz census --write` makes all."""
    assert library.version() == shipped().transformers, "run `normviz census --write`"
    with quiet():
        found = inspect_named(model)
    told = [row for row in rows(model) if row.told == DATA_FLOW]
    assert told
    for row in told:
        here = census.answers(census.stack_of(row, found))
        mine = [name for name in FIELDS if name not in row.by_code]
        assert "placement" in mine
        assert {name: here[name] for name in mine} == {name: getattr(row, name) for name in mine}
    assert found == anatomies()[model], "run `normviz census --write`"


def test_every_row_is_what_its_anatomy_gives_and_none_is_contradicted() -> None:
    every = [*census.compared(shipped().all, anatomies())]
    for it in every:
        with case(it.row.model):
            assert it.outcome != census.CONTRADICTED
            assert (it.row.told == DATA_FLOW) == (it.outcome == census.CONFIRMED)
            assert it.why or it.outcome == census.CONFIRMED
            assert census.made_again(it.row, it.stack, it.row.transformers) == it.row
    assert sum(it.outcome == census.CONFIRMED for it in every) >= 220


def test_the_doctor_finds_nothing_in_published_types_but_what_they_lack() -> None:
    """DonutSwin has no norm after its last stage."""
    every = {name: it.findings for name, it in anatomies().items() if not isinstance(it, str)}
    found = {name: [one.name for one in ones] for name, ones in every.items() if ones}
    assert found == {"donut-swin": ["final norm missing"]} and len(every) >= 245


def test_a_row_told_by_data_flow_follows_it_and_one_from_the_code_does_not() -> None:
    row, it = named("gpt2"), anatomies()["gpt2"]
    stack = census.stack_of(row, it)
    assert stack is not None and row.told == DATA_FLOW

    def again(before: Model) -> Model:
        return census.made_again(before, stack, "9")

    def outcome(before: Model) -> str:
        (one,) = census.compared([before], anatomies())
        return one.outcome

    wrong = replace(row, placement="post", final_norm="no")
    assert outcome(wrong) == census.CONTRADICTED
    assert again(wrong) == replace(row, transformers="9")
    held = replace(wrong, placement="pre", by_code=("final_norm",))
    assert again(held) == replace(held, transformers="9") and outcome(held) == census.CONFIRMED
    read = replace(wrong, told=CODE)
    assert again(read) == read and outcome(read) == census.CONTRADICTED
    agrees = replace(read, placement="pre")
    assert again(agrees) == replace(held, transformers="9")
    assert census.made_again(row, None, "9") == row


def test_a_new_model_type_has_a_row_for_each_stack_with_other_answers() -> None:
    for model, placements in (
        ("t5", ["pre"]),
        ("altclip", ["post", "pre"]),
        ("reformer", [None]),
    ):
        with case(model):
            it = anatomies()[model]
            assert not isinstance(it, str)
            made = census.rows_of(model, "decoder", 2020, it, "9")
            assert [row.placement for row in made] == placements
            assert all(bool(row.open) == (row.placement is None) for row in made)
            assert {(row.told, row.transformers, row.by_code) for row in made} == {
                (DATA_FLOW, "9", ())
            }


def test_it_says_how_its_rows_were_told() -> None:
    """With counts from the rows; also the command, which names each row that the data flow does not tell."""
    it = shipped()
    read = [row for row in it.all if row.told == CODE]
    flow = [row for row in it.all if row.told == DATA_FLOW]
    assert len(read) + len(flow) == len(it.all) and {row.transformers for row in it.all} == {
        it.transformers
    }
    scope = f"of {len({row.model for row in it.all})} model types in transformers"
    assert scope in it.origin and f"{len(it.models)} of them of language models" in it.origin
    assert f"placement of {len(flow)} was told by the flow of data" in it.origin
    assert f"The other {len(read)} were read from the code" in it.origin
    assert f"{sum(len(row.by_code) for row in flow)} single answers" in it.origin
    assert named("clip").told_words == "data flow; code: Embedding norm"
    done = normviz("census")
    counts, *lines = done.output.splitlines()
    assert done.exit_code == 0 and f"{len(it.all)} rows: {len(flow)} told by data flow" in counts
    assert "; 0 contradicted" in counts
    listed = [line for line in lines if "table: " in line]
    assert [line.split()[0] for line in listed] == [row.model for row in read]
    assert all(line.split("data flow: ")[1].split(maxsplit=1)[1:] for line in listed), (
        "with its reason"
    )


@pytest.mark.slow
def test_a_type_is_asked_for_and_one_without_a_row_is_a_sentence() -> None:
    done = normviz("census", "gpt2", "xlm")
    assert done.exit_code == 0 and done.output.startswith(
        "2 rows: 1 told by data flow; 1 did not run"
    )
    for words, said in (
        (["nobody"], "has no row of nobody"), (["--write", "nobody"], "lists no model type nobody"),
    ):  # fmt: skip
        done = normviz("census", *words)
        assert (done.exit_code, said in done.output) == (2, True)


@pytest.mark.slow
def test_rows_are_made_again_and_a_type_without_one_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, traces = tmp_path / "models.json", tmp_path / "anatomies.json"
    monkeypatch.setattr("normviz.cli.census.TABLE", models)
    monkeypatch.setattr("normviz.own_model.shipped.TABLE", traces)
    monkeypatch.setattr("normviz.cli.census.shipped_rows", lambda: replace(it, all=without))
    it = shipped()
    without = tuple(row for row in it.all if row.model != "gpt2")
    done = normviz("census", "--write", "gpt2", "bert")
    assert done.exit_code == 0 and "2 rows: 2 told by data flow" in done.output
    assert read_back(models.read_text()).all == it.all
    assert traces.read_bytes() == anatomies_file.read_bytes()


anatomies_file = Path(census.__file__).with_name("anatomies.json")


def test_it_reads_what_a_reader_reads() -> None:
    for model, answers in READ.items():
        with case(model):
            row = named(model)
            assert (row.placement, row.norm, row.final_norm, row.qk_norm) == answers
            assert row.open == ""


@pytest.mark.slow
@pytest.mark.parametrize("model", SWITCHES)
def test_a_switch_that_a_remark_names_changes_what_the_flow_of_data_tells(model: str) -> None:
    remark, changed = SWITCHES[model]
    assert remark in named(model).settings
    name, value = remark.partition(":")[0].split("=")
    config = {"model_type": model, name: value == "True"}
    with quiet():
        stack = census.stack_of(named(model), inspect_config(json.dumps(config)))
    here = census.answers(stack)
    assert {n: here[n] for n in FIELDS if here[n] != getattr(named(model), n)} == changed


@pytest.mark.parametrize("word", EMBEDDING)
def test_it_tells_the_norm_on_the_embedding(word: str) -> None:
    assert {model: named(model).embed_norm for model in EMBEDDING[word]} == dict.fromkeys(
        EMBEDDING[word], word
    )
    known = [row for row in shipped().models if row.embed_norm]
    assert len(known) >= 0.95 * len(shipped().models)


def test_a_hybrid_is_read_from_its_attention_and_says_so() -> None:
    for model, others in (
        ("jamba", "JambaMambaDecoderLayer: Pre-LN"),
        ("lfm2", "`self.is_attention_layer`: QK-norm no"),
        ("bamba", "`self.block_type == 'linear_attention'`: the same"),
    ):
        (note,) = (it for it in named(model).settings if it.startswith("other layers"))
        assert note.endswith(others), model


def test_what_has_no_placement_of_the_catalogue_stays_undecided() -> None:
    found = {row.model for row in shipped().models if row.placement is None}
    assert found.issuperset(OPEN)
    assert len([row for row in shipped().models if row.placement is None]) <= 15


def test_other_models_are_in_no_count_of_language_models() -> None:
    it = shipped()
    others = it.of(OTHERS)
    assert {row.kind for row in others} == set(OTHERS) and len(others) > 40
    assert len(it.models) + len(others) == len(it.all)
    assert not {row.model for row in it.models} & {row.model for row in others}
    kinds = ("decoder", "encoder", "encoder-decoder", "vision", "audio", "image and text")
    for model, kind in zip(("llama", "bert", "t5", "vit", "hubert", "clip"), kinds, strict=True):
        assert named(model).kind == kind


def test_what_it_names_is_in_the_catalogue() -> None:
    for row in shipped().all:
        assert row.placement is None or row.placement in SCHEMES
        assert row.norm is None or row.norm in NORMS
        assert row.qk_norm in (None, "none") or row.qk_norm in QK_NORMS
        assert bool(row.placement) != bool(row.open) or row.placement, row
        assert row.placement or row.open, "what could not be told has a reason"


def test_its_summary_counts_every_stack() -> None:
    it = shipped()
    pre = sum(model.placement == "pre" for model in it.models)
    assert f"Placement: {pre} Pre-LN; " in it.summary
    for title in TITLES:
        (column,) = re.findall(rf"{title}: ([^.]*)\.", it.summary)
        assert sum(int(one.split()[0]) for one in column.split("; ")) == len(it.models)


@pytest.mark.parametrize(
    ("code", "configuration", "found"),
    [
        ("# Copyright 2024 A\n# Copyright (c) 2018, B", "# Copyright 2020 C", 2024),
        ("# Copyright (c) 2018, B", "", 2018),
        ("# Copyright (C) 2025 D", "", 2025),
        ("import torch", "# Copyright 2020 C", 2020),
        ("import torch", "", None),
        ("import torch" + "\n" * 5000 + "# Copyright 2024 A", "", None),
    ],
)
def test_the_year_is_the_first_of_the_copyright_notice(
    tmp_path: Path, code: str, configuration: str, found: int | None
) -> None:
    (tmp_path / "modeling_a.py").write_text(code)
    (tmp_path / "configuration_a.py").write_text(configuration)
    assert library.year(tmp_path / "modeling_a.py") == found


@pytest.mark.parametrize("kind", TITLES)
def test_the_pictures_count_every_stack_once(kind: str) -> None:
    it = shipped()
    rows_of = {row["what"]: row["n"] for row in totals(it, kind)["datasets"]["totals"]}
    assert sum(rows_of.values()) == len(it.models)
    dated = years(it, kind)["datasets"]["years"]
    undated = sum(model.year is None for model in it.models)
    assert sum(row["n"] for row in dated) == len(it.models) - undated
    for row in dated:
        assert row["of"] == sum(model.year == row["year"] for model in it.models)
    assert undated <= 0.05 * len(it.models)
    assert all(f"{n} {what}" in finding(it, kind) for what, n in rows_of.items())
    colors = totals(it, kind)["layer"][0]["encoding"]["color"]["scale"]
    assert len(set(colors["range"])) == len(colors["domain"]) == len(rows_of)


def test_it_comes_back_as_it_was_written() -> None:
    assert shipped().dump() == TABLE.read_text(encoding="utf-8")
    assert read_back(shipped().dump()) == shipped()


def test_no_library_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = normviz("census", "--write")
    assert (done.exit_code, "transformers is not installed" in done.output) == (2, True)
