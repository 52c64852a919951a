"""What there is to train on: cores, and GPUs."""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def cores() -> int:
    """Cores that this process may use: in a container those are often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Gpu:
    """A CUDA GPU: its name, its memory in GiB, and what names it in $CUDA_VISIBLE_DEVICES."""

    name: str
    gib: float
    visible: str


@cache
def gpus() -> tuple[Gpu, ...]:
    """The CUDA GPUs of this machine that this process may use, none without a PyTorch built for them; found
    without loading PyTorch."""
    if _built("cuda") is None:
        return ()
    try:
        return read_gpus(ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1"))
    except (OSError, AttributeError):
        return ()


def read_gpus(driver: Any) -> tuple[Gpu, ...]:
    """The GPUs that a CUDA driver knows, none where it fails."""
    count, chosen = ctypes.c_int(), os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    listed = []
    for number in range(count.value):
        device, name, size = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
        driver.cuDeviceGet(ctypes.byref(device), number)
        driver.cuDeviceGetName(name, len(name), device)
        driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
        visible = chosen.split(",")[number].strip() if chosen else str(number)
        listed.append(Gpu(name.value.decode(errors="replace"), size.value / 2**30, visible))
    return tuple(listed)


def has_gpu() -> bool:
    """Whether there is a CUDA GPU that PyTorch may use."""
    return bool(gpus())


def on_gpu(name: str, tf32: bool | None = None) -> str:
    """The device of a run on the GPU of this name, with what else its digits depend on: PyTorch's version,
    and whether products of matrices are in TF32 (None: as PyTorch's environment variable has it).
    "cuda: NVIDIA H200, PyTorch 2.11.0+cu130"."""
    if tf32 is None:
        tf32 = os.environ.get("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE") == "1"
    return f"cuda: {name}, PyTorch {_built('__version__')}" + ", TF32" * tf32


@cache
def _built(name: str) -> str | None:
    """What PyTorch's version.py says of a name, read without loading PyTorch; None for nothing."""
    torch = find_spec("torch")
    path = Path(torch.origin).with_name("version.py") if torch and torch.origin else None
    if path is None or not path.exists():
        return None
    match = re.search(rf"^{name}\b.*=\s*['\"]([^'\"]+)", path.read_text(), re.M)
    return match and match[1]
