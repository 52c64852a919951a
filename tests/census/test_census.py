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
from normviz.catalog.models import OWN_LABELS, TITLES, Census, Model
from normviz.catalog.models import census as shipped
from normviz.catalog.models import read as read_back
from normviz.census.interpreter import Program
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
}
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
    return next(row for row in it.models if row.model == model)


@pytest.mark.slow
def test_the_shipped_table_is_what_the_command_reads() -> None:
    assert now().transformers == shipped().transformers, "run `normviz census`"
    assert now().models == shipped().models, "run `normviz census`"


@pytest.mark.parametrize("model", READ)
def test_it_reads_what_a_reader_reads(model: str) -> None:
    row = named(shipped(), model)
    assert (row.placement, row.norm, row.final_norm, row.qk_norm) == READ[model]
    assert row.open == ""


@pytest.mark.parametrize("model", SWITCHES)
def test_it_says_which_switch_changes_the_answer(model: str) -> None:
    assert SWITCHES[model] in named(shipped(), model).settings


def test_what_it_names_is_in_the_catalogue() -> None:
    for row in shipped().models:
        assert row.placement is None or row.placement in SCHEMES
        assert row.norm is None or row.norm in NORMS or row.norm in OWN_LABELS
        assert row.qk_norm in (None, "none") or row.qk_norm in QK_NORMS
        assert bool(row.placement) != bool(row.open) or row.placement, row
        assert row.placement or row.open, "what could not be told has a reason"


def test_most_are_told() -> None:
    told = [row for row in shipped().models if row.placement]
    assert len(shipped().models) >= 200
    assert len(told) >= 0.75 * len(shipped().models)


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
        ("x = 0.5 * x + self.first(self.a(x)); return 0.5 * x + self.second(self.b(x))", None),
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
