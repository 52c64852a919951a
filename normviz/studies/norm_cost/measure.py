"""Times all variants in rounds, and counts PyTorch's work in a call.

`measure` gives a measurement's rounds and its result: seconds, and the kernels, bytes and operations of each
call.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ...execution import TaskError
from ...runs.store import Store
from ...training.captured import WARM_UP
from ...training.loop import find_device
from . import stored_results
from .contexts import Call, calls, layernorm, rmsnorm
from .result import (
    MAX_ROUNDS,
    MIN_ROUNDS,
    CostSetting,
    Counts,
    Measurement,
    Round,
    Row,
    describe,
    load,
    ratio,
)
from .variants import BOTH, CASES, KEYS, REFERENCE

PATIENCE_SECONDS = 60.0
"""How long a measurement waits for runs that train."""
POLL_SECONDS = 0.1


def measure(setting: CostSetting, store: Store) -> Iterator[Round | Measurement]:
    """Yields a Round before each round, and at the end the Measurement, which is kept in the store's folder.

    No round begins while a run of the store trains. Raises TaskError if one trains for a minute, ConfigError
    if the GPU is missing, StoreError, and OSError if the result can't be kept.
    """
    device, before = find_device(setting.device), load()
    _await_runs(store)
    torch.set_num_threads(setting.threads)
    made = {key: calls(key, setting, device) for key in KEYS}
    counted = {
        (key, *case): _counted(setting, key, case, made[key][case])
        for key in KEYS
        for case in CASES
    }
    inside = [CALLS if device.type == "cuda" and context != "step" else 1 for context, _ in CASES]
    table = [
        [replay_of(made[key][case], n) if n > 1 else made[key][case] for key in KEYS]
        for case, n in zip(CASES, inside, strict=True)
    ]
    repeats = [[calibrate(call, device) for call in group] for group in table]
    rng = np.random.default_rng(0)
    began = time.perf_counter()
    one_round(table, repeats, device, rng)  # warms up and gives the time of a round
    each = time.perf_counter() - began
    total = int(np.clip(setting.seconds / each, MIN_ROUNDS, MAX_ROUNDS))
    rounds = []
    for done in range(total):
        yield Round(done, total, each * (total - done))
        _await_runs(store)
        rounds.append(one_round(table, repeats, device, rng))
    seconds = np.array(rounds).transpose(1, 2, 0)  # [cases, variants, rounds]
    seconds /= np.array(inside)[:, None, None]
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    measurement = Measurement(
        setting=setting,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe(gpu),
        load=before,
        torch=torch.__version__,
        rounds=total,
        rows=tuple(_rows(seconds, counted)),
    )
    stored_results.keep(measurement, store.folder)
    yield measurement


def _await_runs(store: Store) -> None:
    """Wait until no run trains. Raises TaskError if one does for long."""
    until = time.monotonic() + PATIENCE_SECONDS
    while store.is_training():
        if time.monotonic() > until:
            raise TaskError(
                f"a run has been training here for the last {PATIENCE_SECONDS:g} s, and a measurement "
                "beside it would be wrong: stop or pause it, or try again when it has ended"
            )
        time.sleep(POLL_SECONDS)


def _counted(
    setting: CostSetting, key: str, case: tuple[str, str], call: Call
) -> tuple[Counts, float]:
    """The counts of one call, and for a norm alone the formula's operations per number."""
    context, passes = case
    operations = 0.0
    if context == "alone":
        whole = of_formula(key, setting.tokens, setting.width, passes == BOTH)
        operations = whole.operations / (setting.tokens * setting.width)
    return count(call), operations


def _rows(
    seconds: NDArray[np.float64], counted: dict[tuple[str, str, str], tuple[Counts, float]]
) -> Iterator[Row]:
    """Rows from seconds [cases, variants, rounds]."""
    for (context, passes), group in zip(CASES, seconds, strict=True):
        reference = group[KEYS.index(REFERENCE)]
        for key, series in zip(KEYS, group, strict=True):
            counts, operations = counted[key, context, passes]
            yield Row(
                key, context, passes, float(np.median(series)), ratio(series, reference),
                counts.kernels, counts.bytes, operations,
            )  # fmt: skip


# Seconds of a call, and a round of calls in random order.

BATCH_SECONDS = 1e-3
"""Least duration of a batch of calls; a shorter one would measure the clock and the loop."""
BEST_OF = 3
"""Batches per round and call. The fastest counts, because other work can only slow one down."""


def batch(call: Call, repeats: int, device: torch.device) -> float:
    """Mean seconds of one call over `repeats` in a row. A short call runs once before, untimed, to
    load the caches.

    On a GPU it uses events on the stream, which wait for the queued work. The host's clock would measure
    only the queueing.
    """
    if repeats > 1:
        call()
    return (_on_cuda if device.type == "cuda" else _on_cpu)(call, repeats) / repeats


def _on_cpu(call: Call, repeats: int) -> float:
    """With one thread, processor time, which excludes waiting for a busy core."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    began = clock()
    for _ in range(repeats):
        call()
    return clock() - began


def _on_cuda(call: Call, repeats: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3  # from milliseconds


CALLS = 20
"""Calls that a GPU makes by one replay, so that their time is theirs and not that of starting them."""


def replay_of(call: Call, n: int) -> Call:
    """On a GPU, n calls as one replay of their kernels."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(n):
            call()
    return graph.replay


def calibrate(call: Call, device: torch.device) -> int:
    """Number of calls per batch. Also warms the call up."""
    for _ in range(2):
        call()
    repeats = 1
    while (seconds := batch(call, repeats, device)) * repeats < BATCH_SECONDS:
        repeats = max(repeats + 1, int(1.2 * BATCH_SECONDS / max(seconds, 1e-9)))
    return repeats


def one_round(
    calls: Sequence[Sequence[Call]],
    repeats: Sequence[Sequence[int]],
    device: torch.device,
    rng: np.random.Generator,
) -> list[NDArray[np.float64]]:
    """For each group the seconds of its calls [calls]: the fastest of three repeats, each of which
    times one batch of every call in the group, in random order."""
    gc.collect()
    gc.disable()
    try:
        seconds_by_group = []
        for group, times in zip(calls, repeats, strict=True):
            seconds = np.full(len(group), np.inf)
            for _ in range(BEST_OF):
                for i in rng.permutation(len(group)):
                    seconds[i] = min(seconds[i], batch(group[i], times[i], device))
            seconds_by_group.append(seconds)
        return seconds_by_group
    finally:
        gc.enable()


# Kernels, bytes and operations of a call, counted by a dispatch mode.

NO_KERNEL = {
    "_reshape_alias", "_unsafe_view", "alias", "detach", "empty", "empty_like", "empty_strided",
    "lift_fresh", "new_empty", "new_empty_strided",
}  # fmt: skip
"""In addition to views, which an operation's schema marks."""


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.kernels = self.bytes = self.operations = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: PyTorch would import torch._dynamo to do that, which takes as long as the import of torch, and
        nothing is compiled here."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # the signature is PyTorch's
        out = func(*args, **(kwargs or {}))
        if _starts_a_kernel(func):
            tensors = [x for x in tree_leaves((args, kwargs, out)) if isinstance(x, Tensor)]
            self.kernels += 1
            self.bytes += sum(x.numel() * x.element_size() for x in tensors)
            self.operations += max((x.numel() for x in tensors), default=0)
        return out


def _starts_a_kernel(func: Any) -> bool:
    infos = [returned.alias_info for returned in func._schema.returns]
    is_view = any(info is not None and not info.is_write for info in infos)
    return not is_view and func._schema.name.removeprefix("aten::") not in NO_KERNEL


def count(call: Call) -> Counts:
    """Count the kernels, bytes and operations of one call."""
    with _Counter() as counter:
        call()
    return Counts(counter.kernels, counter.bytes, counter.operations)


def dyt(x: Tensor, alpha: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """DyT written out; arXiv:2503.10622."""
    return torch.tanh(alpha * x) * weight + bias


FORMULAS: dict[str, Callable[..., Tensor]] = {
    "layernorm": layernorm, "again": layernorm, "layernorm_hand": layernorm, "rmsnorm": rmsnorm,
    "rmsnorm_hand": rmsnorm, "rmsnorm_fused": rmsnorm, "dyt": dyt, "none": lambda x: x,
}  # fmt: skip
SHAPES = {layernorm: (-1, -1), rmsnorm: (-1,), dyt: (1, -1, -1)}
"""Shapes of each formula's parameters; -1 is the width."""


def of_formula(variant: str, tokens: int, width: int, backward: bool) -> Counts:
    """The counts of a variant's formula on [tokens, width], forward or forward and backward, as elementary
    operations of PyTorch. Raises KeyError for an unknown variant."""
    formula = FORMULAS[variant]
    learned = [torch.ones(n if n > 0 else width) for n in SHAPES.get(formula, ())]
    inputs = [each.requires_grad_() for each in (torch.randn(tokens, width), *learned)]
    grad = torch.ones(tokens, width)

    def call() -> None:
        y = formula(*inputs)
        if backward and learned:  # without parameters there is no backward pass
            torch.autograd.grad(y, inputs, grad)

    return count(call)
