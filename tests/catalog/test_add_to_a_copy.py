"""What is added to a copy of the code, in one process for all: a setting, a default and two norms.

A new setting is its record and what it does, a new default keeps its word from before in `links.PINNED`: keys
and links stay, and all that reads settings knows it. A new norm is the files that normviz/README.md shows:
with them it trains, is explained, and is linked.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from normviz.home import VARIABLE

ROOT = Path(__file__).parents[2]
EDITS = {
    "normviz/config.py": (
        (
            "    # fmt: on\n",
            """    halved: Annotated[str, Setting(
        "halved logits", choices=catalog.choices.HALVED, group="Model", tape=("off",))] = "off"
    # fmt: on
""",
        ),
        ('axis="2,4,8,16,32")] = 12', 'axis="2,4,8,16,32")] = 24'),
    ),
    "normviz/links.py": (
        ("default in DEFAULTS.items()}", 'default in DEFAULTS.items()} | {"depth": "12"}'),
    ),
    "normviz/catalog/choices.py": (
        (
            "SCHEDULES: Registry",
            """HALVED: Registry[Choice] = Registry(
    "halved",
    (
        Choice("off", "Off", "The logits are whole."),
        Choice("on", "On", "A moiety of them.", code={"logits": "logits = logits * 0.5"}),
    ),
)
SCHEDULES: Registry""",
        ),
    ),
    "normviz/catalog/families.py": (
        ('"branch_gain": "it has no', '"halved": "its logits are whole",\n    "branch_gain": "it has no'),
    ),
    "normviz/model/transformer.py": (
        (
            "        self.softcap, self.zloss",
            '        self.halved = c.halved == "on"\n        self.softcap, self.zloss',
        ),
        ('tap("logits", 0, logits)', 'tap("logits", 0, logits * 0.5 if self.halved else logits)'),
    ),
}  # fmt: skip
SCRIPT = """
import sys
sys.path.append(sys.argv[1])
import torch
from model_kit import assert_the_same
from typer.testing import CliRunner

import normviz
from normviz import ConfigError, RunConfig, train
from normviz.app.views.duel import knobs
from normviz.catalog import NORMS
from normviz.cli.app import main
from normviz.config import engine_here, engine_of
from normviz.links import decode, encode
from normviz.lessons import anatomy
from normviz.studies.maps.grid import grid_of
from normviz.studies.maps.link import spanning
from normviz.model.norms import make_norm
from normviz.runs.search import search
from normviz.training.events import Started, Step

torch.set_num_threads(1)
assert normviz.__file__.startswith(sys.argv[2]) and knobs.__file__.startswith(sys.argv[2])
OLD = "e2-a4f6321d1ac5099a"
assert RunConfig().depth == 24 and RunConfig(depth=12).key == decode("v=1").lanes[0].key == OLD
assert encode([RunConfig()]) == "v=1&depth=24"
on = RunConfig(halved=True, depth=2, width=16, heads=2, seq_len=8, batch=4, steps=2)
assert on.key != on.replace(halved="off").key and "halved" not in on.replace(halved="off").canonical()
assert "halved=on" in encode([on]) and decode(encode([on])).lanes == (on,)

assert "halved" in knobs.GROUPS["Model"] and "halved" in spanning()
assert "moiety" in knobs._about("halved")
assert search("halved logits on").clauses == search("halved on").clauses != search("halved").clauses
assert {c.config.halved for c in grid_of({"halved": "off,on"}, RunConfig()).cells} == {"off", "on"}
assert "A moiety of them." in CliRunner().invoke(main, ["list"]).output
ran = CliRunner().invoke(main, ["run", "halved=on", "depth=2", "steps=1"])
assert ran.exit_code == 0, ran.output

started = next(train(on))
assert isinstance(started, Started)
assert started.engine == engine_of(on) == "eager"
assert "halved=off" in started.why or engine_here()[0] == "eager"
assert_the_same(on)
assert "logits * 0.5" in anatomy.code(on, 32)
try:
    RunConfig(family="rnn", halved="on")
except ConfigError as error:
    assert str(error) == "family is rnn and halved is on, but its logits are whole: leave halved at off"
else:
    raise AssertionError

assert NORMS.keys()[-2:] == ("mine", "theirs")
x = torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
wanted = x / (x.abs().mean(-1, keepdim=True) + 1e-6)
torch.testing.assert_close(make_norm("mine", 16)(x), wanted)
torch.testing.assert_close(make_norm("theirs", 16)(x), torch.nn.functional.rms_norm(x, (16,), eps=1e-6))
for key in ("mine", "theirs"):
    config = RunConfig(norm=key, depth=2, width=16, heads=2, seq_len=8, batch=4, steps=60, lr=0.01)
    losses = [event.loss for event in train(config) if isinstance(event, Step)]
    assert sum(losses[-10:]) < sum(losses[:10]) - 1, losses
    assert_the_same(config)
    assert decode(encode((config,))).lanes == (config,)
    assert anatomy.plain(NORMS[key].formula)
assert "class MeanAbsNorm(nn.Module):" in anatomy.code(config.replace(norm="mine"), 32)
assert "nn.RMSNorm(D, 1e-06)" in anatomy.code(config, 32)
print("all of it holds")
"""


@pytest.mark.slow
def test_a_setting_a_default_and_a_norm_need_nothing_but_their_records_and_what_they_do(
    tmp_path: Path,
) -> None:
    for folder in ("normviz", "app"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    for path, changes in EDITS.items():
        text = (tmp_path / path).read_text()
        for old, new in changes:
            assert text.count(old) == 1, (path, old)
            text = text.replace(old, new)
        (tmp_path / path).write_text(text)
    readme = (ROOT / "normviz" / "README.md").read_text()
    (record,) = re.findall(r"```python\n(from \.\.norm .*?\n)```", readme, re.DOTALL)
    (module,) = re.findall(r"```python\n(\"\"\"A norm .*?\n)```", readme, re.DOTALL)
    pytorchs = record.replace('"mine"', '"theirs"').replace("MeanAbsNorm(", "nn.RMSNorm(")
    for path, source in (
        ("catalog/norms/mine.py", record),
        ("catalog/norms/theirs.py", pytorchs),  # one that PyTorch has is the record alone
        ("catalog/norms/mine_torch.py", module),
    ):
        (tmp_path / "normviz" / path).write_text(source)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ROOT / "tests" / "kits"), str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": "", VARIABLE: str(tmp_path / "home")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    assert "all of it holds" in done.stdout
