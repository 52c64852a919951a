"""A watch in the loops of others: Hugging Face, Lightning, compiled models, several processes, Jupyter."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from crossing_kit import case

import normviz


@pytest.mark.slow
def test_the_callback_watches_a_hugging_face_trainer(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16,
    )  # fmt: skip
    rows = [{"input_ids": (ids := torch.randint(50, (16,))), "labels": ids} for _ in range(24)]
    callback = normviz.Callback(to=None)
    trainer = Trainer(
        LlamaForCausalLM(config),
        TrainingArguments(
            str(tmp_path), max_steps=4, per_device_train_batch_size=2,
            gradient_accumulation_steps=2, max_grad_norm=0.1, logging_steps=1, report_to=[],
            use_cpu=True, disable_tqdm=True, save_strategy="no", dataloader_pin_memory=False,
        ),
        train_dataset=rows, callbacks=[callback],
    )  # fmt: skip
    trainer.train()
    assert callback.watch is not None
    seen = callback.watch.result
    logged = [it for it in trainer.state.log_history if "grad_norm" in it]
    np.testing.assert_allclose(seen.losses, [it["loss"] for it in logged], rtol=1e-3)
    np.testing.assert_allclose(seen.steps.grad_norm, [it["grad_norm"] for it in logged], rtol=1e-3)
    assert seen.config.width == 32 and seen.config.blocks == 3
    for probe in seen.probes:
        assert not np.isnan(seen.values(probe)[:, 1:]).all(), probe
    assert seen.status == "finished" and not callback.watch.missing


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_the_callback_watches_a_lightning_trainer_and_changes_nothing(tmp_path: Path) -> None:
    """Losses, gradients and weights of two accumulated batches a step and clipping, beside a loop."""
    import pytorch_lightning as lightning
    from test_watch_loop import batch, made

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.optimizer = made()

        def training_step(self, rows: list[torch.Tensor], index: int) -> torch.Tensor:
            return self.model(*rows)[1]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return self.optimizer

    def trained(callbacks: list) -> Module:
        module = Module()
        trainer = lightning.Trainer(
            default_root_dir=tmp_path, accelerator="cpu", max_epochs=1, accumulate_grad_batches=2,
            gradient_clip_val=0.1, callbacks=callbacks, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        rows = torch.utils.data.DataLoader([batch(step) for step in range(8)], batch_size=None)
        trainer.fit(module, rows)
        return module

    callback = normviz.LightningCallback(to=None)
    plain, seen = trained([]), trained([callback])
    for one, other in zip(plain.parameters(), seen.parameters(), strict=True):
        assert torch.equal(one, other)

    model, optimizer = made()
    losses, norms = [], []
    for step in range(4):
        each = [model(*batch(2 * step + micro))[1] for micro in range(2)]
        sum(each).div(2).backward()
        losses.append(np.mean([loss.item() for loss in each]))
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1).item())
        optimizer.step()
        optimizer.zero_grad()
    assert callback.watch is not None and callback.watch.result.status == "finished"
    np.testing.assert_allclose(callback.watch.result.losses, losses, rtol=1e-5)
    np.testing.assert_allclose(callback.watch.result.steps.grad_norm, norms, rtol=1e-5)
    assert callback.watch.settings.placement == "pre" and not callback.watch.missing


@pytest.mark.slow
def test_a_compiled_model_is_neither_broken_nor_compiled_again() -> None:
    from test_watch_loop import batch, made
    from torch._dynamo.utils import counters

    def trained(watches: bool) -> tuple[dict, list[float], normviz.own_model.watch.Watch | None]:
        torch._dynamo.reset()
        counters.clear()
        model, optimizer = made()
        compiled = torch.compile(model, backend="aot_eager")
        it = normviz.watch(compiled, optimizer, to=None, every=3) if watches else None
        losses = []
        for step in range(5):
            loss = compiled(*batch(step))[1]
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        if it is not None:
            it.close()
        return {k: dict(counters[k]) for k in ("stats", "frames", "graph_break")}, losses, it

    (plain, losses, _), (seen, same, it) = trained(False), trained(True)
    assert plain == seen and seen["stats"]["unique_graphs"] == 1 and not seen["graph_break"]
    np.testing.assert_allclose(same, losses, rtol=1e-5)
    assert it is not None and it.result.steps.layer_steps.tolist() == [0, 3]
    np.testing.assert_allclose(it.result.losses, same, rtol=1e-6)
    assert not np.isnan(it.result.steps.layers[:, :, 1:]).any()


DISTRIBUTED = """
import os, sys, torch, torch.distributed as dist
import normviz
sys.path.insert(0, {here!r})
from test_watch_loop import batch, made
torch.set_num_threads(1)
child = os.fork()  # two processes that have loaded PyTorch once
rank = 0 if child else 1
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
found = {{}}
for kind in ("ddp", "fsdp2"):
    model, _ = made()
    if kind == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (2,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    it = normviz.watch(model, optimizer, to=None, every=1)
    for step in range(3):
        half = [x.chunk(2)[rank] for x in batch(step)]
        model(*half)[1].backward()
        optimizer.step()
        optimizer.zero_grad()
    it.close()
    assert rank == 0 or kind == "fsdp2" or not it.steps
    if rank == 0:
        seen = it.result
        found[kind] = {{p: seen.values(p) for p in seen.probes}} | {{
            "norm": seen.steps.grad_norm, "loss": seen.losses, "missing": it.missing,
        }}
if rank == 0:
    torch.save(found, sys.argv[2])
dist.destroy_process_group()
failed = bool(child and os.waitpid(child, 0)[1])
os._exit(failed)  # Gloo's threads may abort a process whose interpreter ends: pytorch/pytorch issue 190489
"""


def of_two_processes(folder: Path) -> dict[str, dict[str, Any]]:
    """What a watch recorded with DDP and with FSDP2: each quantity, the norm of all gradients, the losses,
    and what is missing."""
    script = folder / "run.py"
    script.write_text(DISTRIBUTED.format(here=str(Path(__file__).parent)))
    given = [str(folder / "meeting"), str(folder / "seen.pt")]
    command = [sys.executable, str(script), *given]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return torch.load(given[1], weights_only=False)


@pytest.mark.slow
def test_gradients_of_two_processes_equal_those_of_one(tmp_path: Path) -> None:
    from test_watch_loop import batch, made

    found = of_two_processes(tmp_path)
    model, _ = made()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with normviz.watch(model, optimizer, to=None, every=1) as it:
        for step in range(3):
            model(*batch(step))[1].backward()
            optimizer.step()
            optimizer.zero_grad()
    one = it.result
    exact = {"grad_block": 2e-6, "grad_w2": 2e-6}
    wide = dict.fromkeys(("grad_qk", "update_ratio", "norm_drift"), 1e-4)
    for kind, seen in found.items():
        np.testing.assert_allclose(seen["norm"], one.steps.grad_norm, rtol=1e-6)
        for probe, near in (exact | (wide if kind == "ddp" else {})).items():
            with case(kind, probe):
                np.testing.assert_allclose(seen[probe], one.values(probe), rtol=near, atol=1e-9)
        assert math.isfinite(seen["stream_rms"][0, 0])
