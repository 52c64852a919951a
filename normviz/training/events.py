"""The events of a run. `train` yields them and does nothing else with its results."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field

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
class Writing:
    """What a model writes after a fixed piece of its task's text. It can hold parts of that text.

    prompt  [T] the piece, the same at every step and in every lane
    text    what follows: characters drawn one by one at temperature 1, by the same random numbers at every
            step and for all models with one data seed; it ends before a number that is not finite
    looks   [L, T] bytes: how much the prompt's last character attends to each of its characters, the mean
            over the heads of each block, as 255 times the square root of the weight; empty for a model
            without attention
    """

    prompt: str
    text: str
    looks: bytes = field(default=b"", repr=False)

    def dumps(self) -> str:
        """As JSON, which `loads` reads."""
        return json.dumps([self.prompt, self.text, b64encode(self.looks).decode()])

    @classmethod
    def loads(cls, written: str) -> Writing:
        """From JSON. Raises ValueError or TypeError for damage."""
        prompt, text, looks = json.loads(written)
        return cls(prompt, text, b64decode(looks))

    def weights(self) -> list[list[float]]:
        """[L, T] the weights of `looks`."""
        T = len(self.prompt)
        return [
            [(x / 255) ** 2 for x in self.looks[at : at + T]] for at in range(0, len(self.looks), T)
        ]


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
    writing      what the model writes, at the steps of `schedule.written` where the task is a text; None
                 elsewhere
    """

    step: int
    loss: float
    lr: float
    grad_norm: float
    layers: NDArray[np.float64] | None = field(repr=False)
    held_out: float | None = None
    logit_rms: float | None = None
    writing: Writing | None = None


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
    """Last event of a run that reached its end, diverged or not. `steps` is the number of its steps."""

    steps: int


class OutOfMemory(MemoryError):
    """A run needs more memory than its device has."""

    def __init__(self, device: str) -> None:
        where = "the GPU" if device.startswith("cuda") else "this machine"
        super().__init__(f"the run needs more memory than {where} has: lower width, depth or batch")


Event = Started | Step | Edited | Diverged | Finished
