"""The events of a run. `train` yields them and does nothing else with its results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..config import RunConfig
from ..observed import Settings


@dataclass(frozen=True)
class Started:
    """First event. `chance` and `floor` in nats; `text` is the SHA-256 of the text that a task reads.

    `device` is "cpu", or a GPU with PyTorch's version, as in "cuda: NVIDIA H200, PyTorch 2.11.0+cu130".
    `engine` computes the steps: "eager", "tape", "captured" or "stacked". `why` says why the wanted one does
    not run this config here, and where a machine has a GPU, why this device; else "".
    """

    config: Settings
    device: str
    threads: int
    parameters: int
    chance: float
    floor: float | None
    text: str | None
    engine: str = "eager"
    why: str = ""

    @property
    def is_on_gpu(self) -> bool:
        """Whether a CUDA GPU trained the run."""
        return self.device.startswith("cuda")


@dataclass(frozen=True)
class Step:
    """One training step, measured before its update.

    loss         mean loss in nats of the positions that count; may be NaN or inf, that is a result
    lr           learning rate of this step
    grad_norm    L2 norm of all gradients before clipping
    layers       [probes, L+1] in the order of `catalog.PROBES`, or None where not recorded;
                 entries below a probe's first layer are NaN and mean nothing
    held_out     mean loss in nats of the task's held-out batch after the update, in evaluation mode;
                 inf where it is not finite, None where not measured
    logit_rms    RMS of the logits of the step's batch over all positions, sequences and symbols, at the
                 steps with layers; inf where it is not finite, None elsewhere
    """

    step: int
    loss: float
    lr: float
    grad_norm: float
    layers: NDArray[np.float64] | None
    held_out: float | None = None
    logit_rms: float | None = None


@dataclass(frozen=True)
class Edited:
    """The learning rate was changed during the run; `config` includes the change."""

    config: RunConfig


@dataclass(frozen=True)
class Diverged:
    """The run has diverged: at its first non-finite number, or where its loss began to stay too high.

    `where` is what was not finite ("activation", "gradient", "gradient norm" or "loss") or
    "blow-up". `layer` is the first bad block, 0 the embedding; None is the output head,
    and in a blow-up no block alone.
    """

    step: int
    layer: int | None
    where: str


@dataclass(frozen=True)
class Finished:
    """Last event of a run that reached its end, diverged or not. `steps` is the number of its steps.

    `wrote` is what the trained model writes, by its most likely character each time, after a fixed piece of
    the task's text; empty for other tasks, and for a run that diverged or had no steps.
    """

    steps: int
    wrote: str = ""


class OutOfMemory(MemoryError):
    """A run needs more memory than its device has."""

    def __init__(self, device: str) -> None:
        where = "the GPU" if device.startswith("cuda") else "this machine"
        super().__init__(f"the run needs more memory than {where} has: lower width, depth or batch")


Event = Started | Step | Edited | Diverged | Finished
