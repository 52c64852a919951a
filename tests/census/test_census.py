"""Who uses what: the shipped table is what the command reads, and the command reads what people do.

The expectations were written by reading the layers, attentions and final norms of transformers
5.23.0, not from what the command says.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from normviz.catalog import NORMS, QK_NORMS, SCHEMES
from normviz.catalog.models import OTHERS, OWN_LABELS, TITLES, Census, Model
from normviz.catalog.models import census as shipped
from normviz.catalog.models import read as read_back
from normviz.census.interpreter import ONE, Program
from normviz.census.table import census, folder, rows, year
from normviz.charts.census import finding, totals, years
from normviz.cli import main

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
"""Layers with streams that are mixed or scaled by vectors, delayed branches, bottlenecks, or layers
inside layers: no placement of the catalogue."""
SWITCHES = {
    "opt": "do_layer_norm_before=False: placement Post-LN and final norm no",
    "gpt_neox": "use_parallel_residual=False: placement Pre-LN",
    "falcon": "new_decoder_architecture=True: placement Parallel, two norms",
    "bloom": "apply_residual_connection_post_layernorm=True: placement Norm before the fork",
    "stablelm": "use_parallel_residual=True: placement Parallel, one norm",
    "cohere": "use_qk_norm=True: QK-norm per head",
    "llama4_text": "use_qk_norm=False: QK-norm no",
    "phi": "qk_layernorm=True: QK-norm per head",
}


@cache
def now() -> Census:
    return census()


def named(it: Census, model: str) -> Model:
    return next(row for row in it.all if row.model == model)


@pytest.mark.slow
def test_the_shipped_table_is_what_the_command_reads() -> None:
    assert now().transformers == shipped().transformers, "run `normviz census`"
    assert now().all == shipped().all, "run `normviz census`"


@pytest.mark.parametrize("model", READ)
def test_it_reads_what_a_reader_reads(model: str) -> None:
    row = named(shipped(), model)
    assert (row.placement, row.norm, row.final_norm, row.qk_norm) == READ[model]
    assert row.open == ""


@pytest.mark.parametrize("model", SWITCHES)
def test_it_says_which_switch_changes_the_answer(model: str) -> None:
    assert SWITCHES[model] in named(shipped(), model).settings


@pytest.mark.parametrize("word", EMBEDDING)
def test_it_reads_the_norm_on_the_embedding(word: str) -> None:
    assert {
        model: named(shipped(), model).embed_norm for model in EMBEDDING[word]
    } == dict.fromkeys(EMBEDDING[word], word)
    known = [row for row in shipped().models if row.embed_norm]
    assert len(known) >= 0.95 * len(shipped().models)


@pytest.mark.parametrize(
    ("model", "others"),
    [
        ("jamba", "JambaMambaDecoderLayer: Pre-LN"),
        ("olmo_hybrid", "OlmoHybridLinearAttentionDecoderLayer: Pre-LN"),
        ("qwen3_next", "`self.block_type == 'linear_attention'`: QK-norm no"),
        ("lfm2", "`self.is_attention_layer`: QK-norm no"),
        ("bamba", "`self.block_type == 'linear_attention'`: the same"),
        ("recurrent_gemma", "_CLASSES[config.layers_block_type[layer_idx]]`: the same"),
    ],
)
def test_a_hybrid_is_read_from_its_attention_and_says_so(model: str, others: str) -> None:
    (note,) = (it for it in named(shipped(), model).settings if it.startswith("other layers"))
    assert note.endswith(others)


def test_what_has_no_placement_of_the_catalogue_stays_undecided() -> None:
    found = {row.model for row in shipped().models if row.placement is None}
    assert found.issuperset(OPEN)
    assert len([row for row in shipped().models if row.placement is None]) <= 15


def test_a_model_that_wraps_a_language_model_has_no_row_of_language() -> None:
    """Its own layers are an audio encoder; the text is read by a model with a row of its own."""
    wrappers = {"granite_speech", "granite_speech_plus", "nemo_speechlm"}
    assert not wrappers & {row.model for row in shipped().models}


def test_other_models_are_in_no_count_of_language_models() -> None:
    it = shipped()
    others = it.of(OTHERS)
    assert {row.kind for row in others} == set(OTHERS) and len(others) > 40
    assert len(it.models) + len(others) == len(it.all)
    assert not {row.model for row in it.models} & {row.model for row in others}
    kinds = ("decoder", "encoder", "encoder-decoder", "vision", "audio", "image and text")
    for model, kind in zip(("llama", "bert", "t5", "vit", "hubert", "clip"), kinds, strict=True):
        assert named(it, model).kind == kind


def test_what_it_names_is_in_the_catalogue() -> None:
    for row in shipped().all:
        assert row.placement is None or row.placement in SCHEMES
        assert row.norm is None or row.norm in NORMS or row.norm in OWN_LABELS
        assert row.qk_norm in (None, "none") or row.qk_norm in QK_NORMS
        assert bool(row.placement) != bool(row.open) or row.placement, row
        assert row.placement or row.open, "what could not be told has a reason"


def test_most_are_told() -> None:
    told = [row for row in shipped().models if row.placement]
    assert len(shipped().models) >= 200
    assert len(told) >= 0.93 * len(shipped().models)


@pytest.mark.slow
def test_its_summary_counts_every_stack() -> None:
    said = now().summary
    pre = sum(model.placement == "pre" for model in now().models)
    assert f"Placement: {pre} Pre-LN; " in said
    for title in ("Placement", "Norm", "Final norm", "QK-norm"):
        (column,) = re.findall(rf"{title}: ([^.]*)\.", said)
        assert sum(int(it.split()[0]) for it in column.split("; ")) == len(now().models)


@pytest.mark.parametrize(
    ("code", "configuration", "found"),
    [
        ("# Copyright 2024 A\n# Copyright (c) 2018, B", "# Copyright 2020 C", 2024),
        ("# Copyright (c) 2018, B", "", 2018),
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
    assert year(tmp_path / "modeling_a.py") == found


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
    assert read_back(shipped().dump()) == shipped()


# What the rules do with code that they have not seen

HEAD = """
class MadeUpRMSNorm(nn.Module):
    def __init__(self, size):
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))

class MadeUpLayer(nn.Module):
    def __init__(self, config):
        self.a, self.b = MadeUpRMSNorm(config.size), MadeUpRMSNorm(config.size)
        self.first, self.second = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x):
        BODY

class MadeUpForCausalLM(nn.Module):
    def __init__(self, config):
        self.layers = nn.ModuleList([MadeUpLayer(config) for _ in range(config.n)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""


@pytest.mark.parametrize(
    ("body", "placement"),
    [
        ("x = x + self.first(self.a(x)); return x + self.second(self.b(x))", "pre"),
        ("x = self.a(x + self.first(x)); return self.b(self.second(x) + x)", "post"),
        ("x = x + self.a(self.first(x)); return x + self.b(self.second(x))", "resp"),
        ("return x + self.first(self.a(x)) + self.second(self.b(x))", "parallel_two"),
        ("h = self.a(x); return x + (self.first(h) + self.second(h))", "parallel"),
        ("x = x + self.first(x); return x + self.second(x)", "none"),
        (
            "h = self.first(self.a(x)); x = x + (h + self.first(h)); return x + self.second(self.b(x))",
            "pre",
        ),
        (
            "h = self.a(x); x = h + self.first(h); h = self.b(x); return h + self.second(h)",
            "skip_norm",
        ),
        ("x = x + self.first(self.a(x)); return self.b(x + self.second(x))", None),
        ("x = 0.5 * x + self.first(self.a(x)); return 0.5 * x + self.second(self.b(x))", "pre"),
        ("x = 0.5 * x + self.first(x); return 0.5 * x + self.second(x)", None),
        ("return self.first(self.a(x))", None),
        ("return x + self.first(self.a(x) + x)", None),
    ],
)
def test_where_the_norm_stands_decides(tmp_path: Path, body: str, placement: str | None) -> None:
    path = tmp_path / "modeling_made_up.py"
    path.write_text(HEAD.replace("BODY", body))
    (row,) = rows("made_up", Program(path), "MadeUpForCausalLM")
    assert row.placement == placement
    assert bool(row.open) == (placement is None)
    assert row.final_norm == "no"


@pytest.mark.parametrize(
    ("switch", "qk_norm"), [("True", "head"), ("False", "none")], ids=["on", "off"]
)
def test_a_module_that_a_switch_makes_is_there_where_the_switch_is_on(
    tmp_path: Path, switch: str, qk_norm: str
) -> None:
    """Also where its other condition differs from layer to layer, and where it is asked for by hasattr."""
    asked = "q = self.q_norm(q) if hasattr(self, 'q_norm') else q"
    body = f"q = self.first(x).view(1); {asked}; return x + self.second(q)"
    made = (
        "if config.use_qk_norm and config.is_local[0]:\n            self.q_norm = MadeUpRMSNorm(1)"
    )
    code = HEAD.replace("BODY", body).replace("(self, config):", "(self, config: MadeUpConfig):")
    first = "self.first, self.second ="
    path = tmp_path / "modeling_made_up.py"
    path.write_text(code.replace(first, f"{made}\n        {first}"))
    config = f"class MadeUpConfig:\n    use_qk_norm: bool = {switch}\n"
    path.with_name("configuration_made_up.py").write_text(config)
    (row,) = rows("made_up", Program(path), "MadeUpForCausalLM")
    assert row.qk_norm == qk_norm


MODEL = """
class MadeUpModel(nn.Module):
    def __init__(self, config):
        self.embed, self.norm = nn.Embedding(1, 1), MadeUpRMSNorm(config.size)
        self.layers = nn.ModuleList([MadeUpLayer(config) for _ in range(config.n)])

    def forward(self, input_ids, inputs_embeds=None):
        if (input_ids is None) ^ (inputs_embeds is not None):
            raise ValueError
        if inputs_embeds is None:
            inputs_embeds = self.embed(input_ids)
        x = START
        for i, layer in enumerate(self.layers):
            x = layer(x)
        return x

class MadeUpForCausalLM(nn.Module):
    def __init__(self, config):
        self.model = MadeUpModel(config)

    def forward(self, input_ids, inputs_embeds=None):
        return self.model(input_ids=input_ids, inputs_embeds=inputs_embeds)
"""
SANDWICH = "x = x + self.a(self.first(self.b(x))); return x + self.c(self.second(self.d(x)))"
FOUR = "self.c, self.d = MadeUpRMSNorm(1), MadeUpRMSNorm(1)\n        self.first, self.second ="


def made_up(tmp_path: Path, code: str, config: str = "") -> Model:
    path = tmp_path / "modeling_made_up.py"
    path.write_text(code)
    path.with_name("configuration_made_up.py").write_text(config)
    (row,) = rows("made_up", Program(path), "MadeUpForCausalLM")
    return row


@pytest.mark.parametrize(
    ("start", "placement", "embed_norm"),
    [
        ("inputs_embeds", "sandwich", "no"),
        ("self.norm(inputs_embeds)", "peri", "yes"),
        ("F.dropout(self.norm(inputs_embeds * 2), p=0.1) + self.embed(input_ids)", "peri", "yes"),
        ("inputs_embeds + mask(self.layers)", "sandwich", "no"),
    ],
)
def test_peri_is_sandwich_with_a_norm_on_the_embedding(
    tmp_path: Path, start: str, placement: str, embed_norm: str
) -> None:
    layers = HEAD.partition("class MadeUpForCausalLM")[0].replace("BODY", SANDWICH)
    code = layers.replace("self.first, self.second =", FOUR) + MODEL.replace("START", start)
    row = made_up(tmp_path, code)
    assert (row.placement, row.embed_norm) == (placement, embed_norm)


@pytest.mark.parametrize(
    ("made", "is_one"),
    [
        ("ones(1)", True), ("ones((1,))", True), ("zeros(())", True), ("tensor(0.5)", True),
        ("tensor([1.0])", True), ("full((1,), 2.0)", True), ("ones(1, dtype=torch.float)", True),
        ("ones(8)", False), ("ones(1, 5)", False), ("tensor([1.0, 0.0])", False),
        ("full((8,), 2.0)", False),
    ],
)  # fmt: skip
def test_a_parameter_of_one_number_is_told_from_a_vector(made: str, is_one: bool) -> None:
    assert bool(ONE.match(f"torch.{made}")) == is_one


@pytest.mark.parametrize(
    ("scale", "body", "placement"),
    [
        ("1", "x = x * self.s + self.first(self.a(x)); return x + self.second(self.b(x))", "pre"),
        (
            "1",
            "x = x + self.first(self.a(x)); x = x + self.second(self.b(x)); return x * self.s",
            "pre",
        ),
        ("8", "x = x * self.s + self.first(self.a(x)); return x + self.second(self.b(x))", None),
        (
            "8",
            "x = x + self.first(self.a(x)); x = x + self.second(self.b(x)); return x * self.s",
            None,
        ),
        (
            "1",
            "x = self.a(x * self.s + self.first(x)); return self.b(x * self.s + self.second(x))",
            None,
        ),
        ("1", "x = x + self.first(x); x = x + self.second(x); return x * self.s", None),
    ],
)
def test_a_number_on_a_stream_that_is_read_through_norms_changes_no_placement(
    tmp_path: Path, scale: str, body: str, placement: str | None
) -> None:
    """A vector does, and so does a number where the stream is read as it is."""
    parameter = f"self.s = nn.Parameter(torch.ones({scale}))\n        self.first, self.second ="
    code = HEAD.replace("BODY", body).replace("self.first, self.second =", parameter)
    assert made_up(tmp_path, code).placement == placement


@pytest.mark.parametrize(
    ("body", "placement"),
    [
        (
            "h = self.a(x); x = x + self.first(h) + self.second(h); return x + self.first(self.b(x))",
            "pre",
        ),
        ("h = self.a(x); return x + self.first(h) + self.second(h)", "parallel"),
        ("x = x + self.first(self.a(x)); return x + self.second(x)", None),
    ],
)
def test_two_parts_of_one_sublayer_are_no_parallel_block(
    tmp_path: Path, body: str, placement: str | None
) -> None:
    assert made_up(tmp_path, HEAD.replace("BODY", body)).placement == placement


@pytest.mark.parametrize("linear", ["x + self.first(self.a(x))", "self.a(x + self.first(x))"])
def test_a_kind_of_layer_that_the_code_passes_is_the_one_with_attention(
    tmp_path: Path, linear: str
) -> None:
    body = f"""if self.block_type == 'linear_attention':
            return {linear}
        q = self.q_norm(self.first(self.a(x)).view(1))
        return x + self.second(q)"""
    code = HEAD.replace("BODY", body).replace(
        "def __init__(self, config):\n        self.a",
        "def __init__(self, config, block_type='linear_attention'):\n"
        "        self.block_type, self.q_norm = block_type, MadeUpRMSNorm(1)\n        self.a",
    )
    row = made_up(tmp_path, code)
    assert (row.placement, row.qk_norm) == ("pre", "head")
    (note,) = row.settings
    assert note.startswith("other layers without attention") and "QK-norm no" in note
    assert ("placement Post-LN" in note) == (linear[0] == "s")


def test_norms_that_the_catalogue_does_not_have_are_not_the_absence_of_norms(
    tmp_path: Path,
) -> None:
    body = "return x + self.first(self.n(x))"
    other = "self.n = nn.GroupNorm(1, 8)\n        self.first, self.second ="
    code = HEAD.replace("BODY", body).replace("self.first, self.second =", other)
    row = made_up(tmp_path, code)
    assert (row.placement, row.open) == (None, "its norms are of another kind: GroupNorm")


def test_what_a_comment_says_is_no_evidence_of_mhc() -> None:
    """HY-V4's docstring says that it has no Sinkhorn iteration."""
    assert named(shipped(), "deepseek_v4").placement == "mhc"
    assert "Sinkhorn" in SCHEMES["mhc"].equations[-1]
    assert named(shipped(), "hy_v4").placement is None


def test_who_uses_mhc_is_what_their_code_says() -> None:
    """The table does not read GLM-5.3-Flash, which is a multimodal model."""
    users = SCHEMES["mhc"].used_by
    for model, checkpoint, mixes in (
        ("glm5_next", "zai-org/GLM-5.3-Flash", True),
        ("glm_moe_dsa", "zai-org/GLM-5", False),
    ):
        where = folder() / model
        assert f'"{checkpoint}"' in (where / f"configuration_{model}.py").read_text()
        code = (where / f"modeling_{model}.py").read_text()
        assert ("manifold-constrained Hyper-Connections" in code) == mixes
        assert (checkpoint.removeprefix("zai-org/") in users.split(", ")) == mixes
    assert named(shipped(), "glm_moe_dsa").placement == "pre"


def test_no_library_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    folder.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = CliRunner().invoke(main, ["census", "--out", "/dev/null"])
    assert (done.exit_code, "transformers is not installed" in done.output) == (2, True)
    folder.cache_clear()


def test_the_terminal_prints_all() -> None:
    done = CliRunner().invoke(main, ["list", "--models"])
    assert done.exit_code == 0
    assert shipped().transformers in done.output and shipped().day in done.output
    assert all(row.model in done.output for row in shipped().models)
    assert replace(named(shipped(), "opt"), open="why").remarks.startswith("why; do_layer")
