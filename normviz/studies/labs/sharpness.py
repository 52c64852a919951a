"""Sharpness, the largest eigenvalue of the loss's Hessian, over the optimizer's edge of stability.

Gradient descent at a rate eta is stable up to 2 / eta (Cohen et al. 2021, arXiv:2103.00065). For Adam the
matrix is P^-1/2 H P^-1/2 with the preconditioner P = (1 - beta1^t) (sqrt(v / (1 - beta2^t)) + eps), and the
edge is (2 + 2 beta1) / ((1 - beta1) eta), which is 38 / eta for beta1 = 0.9 (Cohen et al. 2022,
arXiv:2207.14484). Both edges are of training on one fixed batch. The two sharpnesses are of different
matrices: each may be compared with its own edge only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ...config import RunConfig
from ...model.data import Task
from ...model.transformer import Transformer
from ...training.schedule import lr_at
from .model import batch, begun

EPS = 1e-8
SETTLE = 20
"""Batches from which Adam's mean of squared gradients is taken before the first step."""
ROUNDS, CLOSE = 80, 1e-4
"""Lanczos' iteration ends after so many products, or where the eigenvalue changes by less than this share."""
Product = Callable[[Tensor], Tensor]


def measure(config: RunConfig) -> dict[str, float]:
    """Before the first step and after the last one: `start` and `later`, the sharpness of the batch of that
    step; `start_edge` and `later_edge`, the sharpness that the optimizer's edge is about, over that edge at
    the peak rate. `loss` after the last step. All in float64, in a training of its own.

    Before the first step Adam's v is the mean of 20 batches' squared gradients. Raises ValueError for other
    optimizers than Adam and SGD, and for momentum, decay and clipping, for which the edges do not hold.
    """
    c = config
    if c.optimizer == "muon" or c.momentum or c.weight_decay or c.clip is not None:
        raise ValueError("the edges are those of SGD without momentum and of Adam, without decay")
    model, task = begun(c)
    parameters = [p for p in model.parameters() if p.requires_grad]
    scale = settled(model, task, parameters, c) if c.optimizer == "adamw" else None
    readings = {
        f"start{key}": value for key, value in both(model, task, 0, parameters, scale, c).items()
    }
    scale = trained(model, task, parameters, c)
    readings |= {
        f"later{key}": value
        for key, value in both(model, task, c.steps, parameters, scale, c).items()
    }
    with torch.no_grad():
        return {**readings, "loss": float(model.loss(*batch(task, c.steps)))}


def both(
    model: Transformer, task: Task, step: int, parameters: Sequence[Tensor], scale: Tensor | None,
    config: RunConfig,
) -> dict[str, float]:  # fmt: skip
    """The plain sharpness on the batch of a step, and as `_edge` what the optimizer's edge is about over
    that edge; `scale` is the diagonal of P^-1/2."""
    product = hessian(model.loss(*batch(task, step)), parameters)
    size = sum(p.numel() for p in parameters)
    plain = sharpness(product, size)
    if scale is None:
        return {"": plain, "_edge": plain * config.lr / 2}
    own = sharpness(lambda v: scale * product(scale * v), size)
    edge = (2 + 2 * config.beta1) / ((1 - config.beta1) * config.lr)
    return {"": plain, "_edge": own / edge}


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
    model: Transformer, task: Task, parameters: Sequence[Tensor], config: RunConfig
) -> Tensor | None:
    """Train the model in place for the config's steps. Returns Adam's P^-1/2 [n]; None for SGD."""
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
    if c.optimizer != "adamw":
        return None
    return inverse_root(
        flat([optimizer.state[p]["exp_avg_sq"] for p in parameters]), c.steps, config
    )


def inverse_root(v: Tensor, steps: int, config: RunConfig) -> Tensor:
    """P^-1/2 [n] of Adam's v after so many steps."""
    mean = v / (1 - config.beta2**steps)
    return ((1 - config.beta1**steps) * (mean.sqrt() + EPS)) ** -0.5


def flat(parts: Sequence[Tensor]) -> Tensor:
    """Tensors as one vector."""
    return torch.cat([part.reshape(-1) for part in parts])
