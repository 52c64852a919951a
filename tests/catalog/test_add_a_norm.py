"""A new norm is the files that normviz/README.md shows: with them it trains, is explained, and is linked."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
sys.path.append(sys.argv[1])
import torch
from model_kit import assert_the_same

import normviz
from normviz import RunConfig, anatomy, train
from normviz.catalog import NORMS
from normviz.training.events import Step
from normviz.links import decode, encode
from normviz.model.norms import make_norm

torch.set_num_threads(1)
assert normviz.__file__.startswith(sys.argv[2])
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
def test_the_files_of_the_readme_are_all_that_a_norm_needs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "normviz", tmp_path / "normviz")
    text = (ROOT / "normviz" / "README.md").read_text()
    (record,) = re.findall(r"```python\n(from \.\.norm .*?\n)```", text, re.DOTALL)
    (module,) = re.findall(r"```python\n(\"\"\"A norm .*?\n)```", text, re.DOTALL)
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
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    assert "all of it holds" in done.stdout
