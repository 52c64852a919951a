"""The smaller choices of a run that are plain words: activation, optimizer, schedule, QK-norm, device."""

from __future__ import annotations

from dataclasses import dataclass

from .registry import Registry


@dataclass(frozen=True)
class Choice:
    """A word that configs use, what people call it, and what it means."""

    key: str
    label: str
    sentence: str


QK_NORMS: Registry[Choice] = Registry(
    "qk_norm",
    (
        Choice("off", "Off", "Queries and keys are used as they are."),
        Choice(
            "on",
            "On",
            "Queries and keys of each head are divided by their RMS, without learned scale "
            "(after Henry et al. 2020, arXiv:2010.04245).",
        ),
    ),
)
ACTIVATIONS: Registry[Choice] = Registry(
    "activation", (Choice("relu", "ReLU", "max(0, x)"), Choice("gelu", "GELU", "x Phi(x), exact"))
)
OPTIMIZERS: Registry[Choice] = Registry(
    "optimizer",
    (
        Choice("adamw", "AdamW", "Adam with decoupled weight decay (beta1, beta2, eps 1e-8)."),
        Choice("sgd", "SGD", "Gradient descent with momentum."),
    ),
)
SCHEDULES: Registry[Choice] = Registry(
    "schedule",
    (
        Choice("constant", "Constant", "The learning rate stays after warm-up."),
        Choice("linear", "Linear", "It falls linearly after warm-up, to zero after the last step."),
        Choice("cosine", "Cosine", "It falls along half a cosine after warm-up, to zero."),
    ),
)
DEVICES: Registry[Choice] = Registry(
    "device",
    (
        Choice("auto", "Automatic", "A CUDA GPU where there is one, else the CPU."),
        Choice("cpu", "CPU", "The CPU, one thread a lane."),
        Choice("cuda", "CUDA GPU", "An NVIDIA GPU; the run fails with a sentence without one."),
    ),
)
