"""The script's lines that train: learning rate, optimizer, and the loop that prints losses."""

from __future__ import annotations

from ..catalog import SCHEMES
from ..config import RunConfig
from .lane import ExportLane


def learning_rate(c: RunConfig) -> list[str]:
    """Source of the learning rate at a step; empty if it is constant."""
    if not changes(c):
        return []
    lines = ["", "def learning_rate(step):", f"    peak = {c.lr!r}"]
    for step, lr in c.lr_edits:
        lines += [f"    if step >= {step}:  # changed while it ran", f"        peak = {lr!r}"]
    if c.warmup:
        lines += [
            f"    if step < {c.warmup}:  # warm-up",
            f"        return peak * (step + 1) / {c.warmup}",
        ]
    if c.schedule == "constant":
        return ["\n".join([*lines, "    return peak"])]
    start = f"(step - {c.warmup})" if c.warmup else "step"
    lines.append(f"    done = {start} / {max(1, c.steps - c.warmup)}")
    if c.schedule == "linear":
        return ["\n".join([*lines, "    return peak * (1.0 - done)"])]
    return ["\n".join([*lines, "    return peak * 0.5 * (1.0 + math.cos(math.pi * done))"])]


def changes(c: RunConfig) -> bool:
    """Whether the learning rate changes."""
    return bool(c.lr_edits or c.warmup or c.schedule != "constant")


def optimizer(c: RunConfig) -> str:
    """The expression that constructs the optimizer."""
    if c.optimizer == "sgd":
        more = f"momentum={c.momentum!r}, weight_decay={c.weight_decay!r}"
        return f"torch.optim.SGD(model.parameters(), {c.lr!r}, {more})"
    more = f"({c.beta1!r}, {c.beta2!r}), weight_decay={c.weight_decay!r}"
    return f"torch.optim.AdamW(model.parameters(), {c.lr!r}, {more}, fused=True)"


def loop(lane: ExportLane, progress: bool) -> str:
    """Source of the training loop; with `progress` the model takes the share of steps done."""
    c, facts = lane.config, lane.facts
    if c.steps == 0:
        told = 'print(f"final loss {loss.item():.6f} (at initialisation)")'
        return "\n".join(["", *_forward("0", "0.0" if progress else ""), told])
    steps, note = c.steps, ""
    if facts.status == "diverged":
        steps = len(lane.recorded.step)
        note = f"  # of {c.steps}: then the run counted as diverged"
    share = f"step / {c.steps}" if progress else ""
    stop = ["if not math.isfinite(losses[-1]):", "    break"] if not facts.is_done else []
    printed = ["if step % 20 == 0:", '    print(f"step {step:5}   loss {losses[-1]:.6f}")']
    inside = [*_forward("step", share), "losses.append(loss.item())", *printed, *stop, *_update(c)]
    return "\n".join(
        [
            "",
            f"optimizer = {optimizer(c)}",
            "losses = []",
            f"for step in range({steps}):{note}",
            *(f"    {line}" for line in inside),
            "tail = losses[-max(1, len(losses) // 10) :]  # the last tenth",
            'print(f"final loss {sum(tail) / len(tail):.6f} (mean of the last {len(tail)})")',
        ]
    )


def _forward(step: str, share: str) -> list[str]:
    more = f", {share}" if share else ""
    return [
        f"inputs, targets = batch({step})",
        f"loss = F.cross_entropy(model(inputs{more}).flatten(0, 1), targets.flatten())",
    ]


def _update(c: RunConfig) -> list[str]:
    lines = ["optimizer.zero_grad()", "loss.backward()"]
    if c.clip is not None:
        lines += [
            "gradients = [p.grad for p in model.parameters()]",
            "norm = torch.cat([g.flatten() for g in gradients]).norm().item()",
            f"if norm > {c.clip!r}:",
            "    for g in gradients:",
            f"        g.mul_({c.clip!r} / norm)",
        ]
    if changes(c):
        lines.append('optimizer.param_groups[0]["lr"] = learning_rate(step)')
    constrain = ["model.constrain()"] if SCHEMES[c.scheme].constraint != "none" else []
    return [*lines, "optimizer.step()", *constrain]
