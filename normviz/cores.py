"""What there is to train on: cores, and a GPU."""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path


def cores() -> int:
    """Cores that this process may use: in a container those are often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def has_gpu() -> bool:
    """Whether there is a CUDA GPU and a PyTorch built for it, found without loading PyTorch."""
    torch = find_spec("torch")
    if torch is None or torch.origin is None:
        return False
    version = Path(torch.origin).with_name("version.py")
    if not version.exists() or not re.search(r"^cuda\b.*=\s*['\"]", version.read_text(), re.M):
        return False
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        count = ctypes.c_int()
        return (
            not (driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)))
            and count.value > 0
        )
    except (OSError, AttributeError):
        return False
