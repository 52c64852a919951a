"""Sharpness, the largest eigenvalue of the loss's Hessian, over the optimizer's edge of stability.

Gradient descent at a rate eta is stable up to 2 / eta (Cohen et al. 2021, arXiv:2103.00065). For Adam the
matrix is P^-1/2 H P^-1/2 with the preconditioner P = (1 - beta1^t) (sqrt(v / (1 - beta2^t)) + eps), and the
edge is (2 + 2 beta1) / ((1 - beta1) eta), which is 38 / eta for beta1 = 0.9 (Cohen et al. 2022,
arXiv:2207.14484). Both edges are of training on one fixed batch. The two sharpnesses are of different
matrices: each may be compared with its own edge only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from ...config import RunConfig
from ...model.data import Task
from ...model.transformer import Transformer
from ...training.eager import EPS
from ...training.schedule import lr_at
from .model import batch, begun

PERCENT = (10, 30, 100)
"""Percent of the steps after which it measures."""
BATCHES = 2
"""Batches whose mean loss is measured: a training batch of its own differs more from seed to seed."""
SETTLE = 20
"""Batches from which Adam's mean of squared gradients is taken before the first step."""
ROUNDS, CLOSE = 80, 1e-4
"""Lanczos' iteration ends after so many products, or where the eigenvalue changes by less than this share."""
Product = Callable[[Tensor], Tensor]


def measure(config: RunConfig) -> dict[str, float]:
    """Before the first step and after 10, 30 and 100 % of the steps: "at0", "at10", "at30" and "at100", the
    sharpness that the optimizer's edge is about, of the loss on the next batches, over that edge at the peak
    rate. `loss` of the last of these batches. All in float64, in a training of its own.

    Before the first step Adam's v is the mean of 20 batches' squared gradients. Raises ValueError for other
    optimizers than Adam and SGD, and for momentum, decay and clipping, for which the edges do not hold.
    """
    c = config
    if c.optimizer == "muon" or c.momentum or c.weight_decay or c.clip is not None:
        raise ValueError("the edges are those of SGD without momentum and of Adam, without decay")
    model, task = begun(c)
    parameters = [p for p in model.parameters() if p.requires_grad]
    scale = settled(model, task, parameters, c) if c.optimizer == "adamw" else None
    readings = {"at0": over_edge(model, task, 0, parameters, scale, c)}
    moments = {max(1, c.steps * percent // 100): f"at{percent}" for percent in PERCENT}
    for step, scale in trained(model, task, parameters, c, tuple(moments)):
        readings[moments[step]] = over_edge(model, task, step, parameters, scale, c)
    with torch.no_grad():
        return {**readings, "loss": float(model.loss(*batches(task, c.steps)))}


def batches(task: Task, step: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets of a step and of those after it, in one batch."""
    parts = [batch(task, step + k) for k in range(BATCHES)]
    inputs, targets = (torch.cat(both) for both in zip(*parts, strict=True))
    return inputs, targets


def over_edge(
    model: Transformer, task: Task, step: int, parameters: Sequence[Tensor], scale: Tensor | None,
    config: RunConfig,
) -> float:  # fmt: skip
    """The sharpness on the batches from a step on, over the optimizer's edge; `scale` is the diagonal of
    P^-1/2, None for SGD."""
    product = hessian(model.loss(*batches(task, step)), parameters)
    size = sum(p.numel() for p in parameters)
    if scale is None:
        return sharpness(product, size) * config.lr / 2
    own = sharpness(lambda v: scale * product(scale * v), size)
    edge = (2 + 2 * config.beta1) / ((1 - config.beta1) * config.lr)
    return own / edge


def hessian(loss: Tensor, parameters: Sequence[Tensor]) -> Product:
    """The product of the Hessian of a scalar with a vector [n] of all parameters."""
    gradient = flat(torch.autograd.grad(loss, parameters, create_graph=True))

    def product(v: Tensor) -> Tensor:
        return flat(torch.autograd.grad(gradient, parameters, v, retain_graph=True)).detach()

    return product


def sharpness(product: Product, size: int) -> float:
    """The largest eigenvalue of a symmetric matrix [size, size], by Lanczos' iteration: power iteration that
    keeps all directions, each orthogonal to those before. NaN where a product is not finite."""
    v = torch.randn(size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    directions, diagonal, beside = [v / v.norm()], list[float](), list[float]()
    eigenvalue = math.nan
    for _ in range(min(ROUNDS, size)):
        w = product(directions[-1])
        if not torch.isfinite(w).all():
            return math.nan
        diagonal.append(float(directions[-1] @ w))
        basis = torch.stack(directions)
        for _ in range(2):  # twice, as rounding leaves a part of the earlier directions
            w = w - basis.T @ (basis @ w)
        small = torch.diag(w.new_tensor(diagonal)) + torch.diag(w.new_tensor(beside), 1)
        before, eigenvalue = eigenvalue, float(torch.linalg.eigvalsh(small, UPLO="U")[-1])
        length = float(w.norm())
        if abs(eigenvalue - before) <= CLOSE * abs(eigenvalue) or length <= 1e-10 * max(
            map(abs, diagonal)
        ):
            break
        directions.append(w / length)
        beside.append(length)
    return eigenvalue


def settled(
    model: Transformer, task: Task, parameters: Sequence[Tensor], config: RunConfig
) -> Tensor:
    """P^-1/2 [n] as if Adam had waited for some batches before its first step."""
    v = torch.zeros(sum(p.numel() for p in parameters), dtype=torch.float64)
    for step in range(SETTLE):
        gradient = flat(torch.autograd.grad(model.loss(*batch(task, step)), parameters))
        v.mul_(config.beta2).addcmul_(gradient, gradient, value=1 - config.beta2)
    return inverse_root(v, SETTLE, config)


def trained(
    model: Transformer, task: Task, parameters: Sequence[Tensor], config: RunConfig,
    moments: Sequence[int],
) -> Iterator[tuple[int, Tensor | None]]:  # fmt: skip
    """Train the model in place. After each of these numbers of steps: the number, and Adam's P^-1/2 [n], None
    for SGD."""
    c = config
    optimizer: torch.optim.Optimizer = (
        torch.optim.Adam(parameters, betas=(c.beta1, c.beta2), eps=EPS)
        if c.optimizer == "adamw"
        else torch.optim.SGD(parameters)
    )
    for step in range(c.steps):
        model.clock.step, model.clock.share = step, step / c.steps
        optimizer.param_groups[0]["lr"] = lr_at(c, step)
        optimizer.zero_grad()
        model.loss(*batch(task, step)).backward()
        optimizer.step()
        if (done := step + 1) in moments:
            seen = [optimizer.state[p].get("exp_avg_sq") for p in parameters]
            yield done, inverse_root(flat(seen), done, c) if c.optimizer == "adamw" else None


def inverse_root(v: Tensor, steps: int, config: RunConfig) -> Tensor:
    """P^-1/2 [n] of Adam's v after so many steps."""
    mean = v / (1 - config.beta2**steps)
    return ((1 - config.beta1**steps) * (mean.sqrt() + EPS)) ** -0.5


def flat(parts: Sequence[Tensor]) -> Tensor:
    """Tensors as one vector."""
    return torch.cat([part.reshape(-1) for part in parts])
