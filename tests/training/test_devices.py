"""Which device trains a run, and why; too little memory. Nothing here needs a GPU."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from normviz import RunConfig
from normviz.config import ConfigError, device_of, engine_of, estimated_seconds
from normviz.cores import Gpu, on_gpu, read_gpus
from normviz.training import loop
from normviz.training.eager import Eager
from normviz.training.events import OutOfMemory, Started
from normviz.training.loop import find_device, train

HERO, LONG = RunConfig(), RunConfig(steps=5000)
LARGE = RunConfig(depth=24, width=256, heads=8, seq_len=64, steps=100)
TINY = RunConfig(depth=1, width=8, heads=1, steps=2)


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates are those of a machine with a GPU, which PyTorch does not find."""
    monkeypatch.setattr("normviz.config.has_gpu", lambda: True)


def test_without_a_gpu_auto_is_the_cpu_and_nothing_is_said() -> None:
    for config in (HERO, LONG, LARGE, HERO.replace(device="cpu")):
        assert device_of(config) == ("cpu", "")
        assert engine_of(config) in ("tape", "eager")
    started = next(iter(train(HERO)))
    assert isinstance(started, Started) and (started.device, started.why) in [("cpu", "")]


@pytest.mark.usefixtures("with_gpu")
def test_auto_is_the_device_that_takes_less_time() -> None:
    for config, device in ((HERO, "cpu"), (LONG, "cuda"), (LARGE, "cuda")):
        name, why = device_of(config)
        assert name == device
        cpu = estimated_seconds(config.replace(device="cpu"))
        assert estimated_seconds(config) == min(cpu, estimated_seconds(config, "captured"))
        assert f"{cpu:,.1f} s on a core of the CPU" in why
    assert engine_of(LARGE) == "captured"
    assert engine_of(LARGE.replace(zloss=1e-3)) == "eager on a GPU"
    for device in ("cpu", "cuda"):
        assert device_of(HERO.replace(device=device)) == (device, "")


def test_estimates_of_a_gpu_are_near_what_an_h100_took() -> None:
    """Milliseconds a step in assets/gpu/h100.md."""
    for config, ms in (
        (HERO, 3.38), (LARGE, 9.26), (LARGE.replace(device="cuda", depth=48, width=512, batch=4), 23.0),
        (LARGE.replace(device="cuda", depth=96, width=512), 57.1),
    ):  # fmt: skip
        own = [estimated_seconds(config.replace(steps=n), "captured") for n in (100, 200)]
        assert (own[1] - own[0]) * 10 == pytest.approx(ms, rel=0.07)


@pytest.mark.usefixtures("with_gpu")
def test_what_pytorch_can_not_use_trains_on_the_cpu_and_says_why() -> None:
    started = next(iter(train(LONG)))
    assert isinstance(started, Started) and started.device == "cpu"
    assert started.why.endswith("PyTorch can't use the GPU")
    with pytest.raises(ConfigError, match="no CUDA GPU that PyTorch can use"):
        next(iter(train(LONG.replace(device="cuda"))))


def test_the_sentence_on_a_missing_gpu_quotes_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_no_gpu", lambda: " (the driver is too old)")
    with pytest.raises(ConfigError, match=r"can use \(the driver is too old\): choose auto"):
        find_device("cuda")


def test_what_pytorch_says_on_its_gpu_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_available() -> bool:
        warnings.warn("The driver is too old (found version 11). Please update", stacklevel=1)
        return False

    monkeypatch.setattr(torch.cuda, "is_available", is_available)
    assert loop._no_gpu.__wrapped__() == " (The driver is too old (found version 11))"


def test_a_gpu_that_runs_no_kernel_of_this_pytorch_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def ones(*_: object, device: str) -> torch.Tensor:
        raise RuntimeError(f"CUDA error: no kernel image is available on {device}\nCompile with")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "ones", ones)
    said = loop._no_gpu.__wrapped__()
    assert said == " (CUDA error: no kernel image is available on cuda)"


def test_a_gpu_allows_larger_runs_and_has_limits_too() -> None:
    size = {"depth": 96, "width": 512, "heads": 8, "seq_len": 64}
    with pytest.raises(ConfigError, match="minutes of one CPU core"):
        RunConfig(**size)
    assert RunConfig(**size, device="cuda").depth == 96
    with pytest.raises(ConfigError, match="minutes of a GPU and at most 30"):
        RunConfig(**{**size, "depth": 200}, device="cuda", steps=20_000)
    with pytest.raises(ConfigError, match="GiB of memory and at most 64"):
        RunConfig(depth=96, width=1024, heads=8, seq_len=512, batch=64, device="cuda", steps=1)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=["Python", "GPU", "CPU"],
)
def test_too_little_memory_is_one_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(*_: object) -> tuple[float, float]:
        raise error

    monkeypatch.setattr(Eager, "step", step)
    with pytest.raises(OutOfMemory, match=r"^the run needs more memory than this machine has"):
        list(train(TINY, engine="eager"))
    assert "than the GPU has" in str(OutOfMemory("cuda"))


def test_another_error_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(*_: object) -> tuple[float, float]:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(Eager, "step", step)
    with pytest.raises(RuntimeError, match="shapes differ"):
        list(train(TINY, engine="eager"))


class Driver:
    """CUDA's, with two GPUs."""

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def cuDeviceGet(self, device: Any, number: int) -> int:
        device._obj.value = number
        return 0

    def cuDeviceGetName(self, name: Any, n: int, device: Any) -> int:
        name.value = b"NVIDIA H200"
        return 0

    def cuDeviceTotalMem_v2(self, size: Any, device: Any) -> int:
        size._obj.value = (device.value + 1) * 2**30
        return 0


def test_gpus_are_read_from_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-5")
    assert read_gpus(Driver()) == (Gpu("NVIDIA H200", 1.0, "3"), Gpu("NVIDIA H200", 2.0, "GPU-5"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert [it.visible for it in read_gpus(Driver())] == ["0", "1"]
    monkeypatch.setattr(Driver, "cuInit", lambda self, flags: 100)
    assert read_gpus(Driver()) == ()


def test_a_result_says_which_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    name = f"cuda: NVIDIA H200, PyTorch {torch.__version__}"
    assert loop.name_of(torch.device("cuda")) == on_gpu("NVIDIA H200") == name
    products = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True))
    monkeypatch.setattr(torch.backends, "cuda", products)
    assert loop.name_of(torch.device("cuda")) == f"{name}, TF32"
    assert loop.name_of(torch.device("cpu")) == "cpu"
    monkeypatch.setenv(
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1"
    )  # what decides in a process without PyTorch
    assert on_gpu("NVIDIA H200") == f"{name}, TF32"
    started = Started(TINY, "cuda: NVIDIA H200", 1, 1, 1.0, None, None, "captured")
    assert started.is_on_gpu and not replace(started, device="cpu").is_on_gpu
    assert "than the GPU has" in str(OutOfMemory(started.device))


def test_the_suite_has_no_gpu() -> None:
    assert not torch.cuda.is_available()
