"""Two models side by side: where their norms stand, what these compute, and what each block gives and gets.

For a port of a model, or a change of one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from . import placement, source, stack
from .anatomy import anatomy_of, of_source, trace_model
from .report import Anatomy, StackFound

CLOSE = 1e-4
"""Relative difference of a block's stream or gradient up to which two models agree."""


@dataclass(frozen=True)
class Row:
    """One thing of both models in words, and whether it is the same."""

    what: str
    a: str
    b: str
    same: bool


@dataclass(frozen=True)
class Difference:
    """Two models: their names, and what was compared. `note` says why blocks were not compared, if so."""

    a: str
    b: str
    rows: tuple[Row, ...]
    note: str = ""

    @property
    def same(self) -> bool:
        """Whether all that was compared is the same."""
        return all(row.same for row in self.rows)

    def __str__(self) -> str:
        lines = [f"A {self.a}", f"B {self.b}"]
        for row in self.rows:
            if row.same:
                lines.append(f"same    {row.what}: {row.a}")
            else:
                lines += [f"DIFFERS {row.what}: A {row.a}", f"{'':{9 + len(row.what)}} B {row.b}"]
        return "\n".join([*lines, *([self.note] if self.note else [])])


def diff(a: nn.Module | str, b: nn.Module | str, inputs: Any = None) -> Difference:
    """What differs between two models, each a module or what `normviz inspect` takes.

    Placement, formulas, norms with eps and scale, gains, and for models with values the stream that leaves
    each block and the gradient at it, of the mean square of the output, on the same input (relative
    differences of L2 norms; up to 1e-4 counts as the same). `inputs` is as for `inspect`; token
    numbers and floating numbers without it are drawn. Raises ValueError with a sentence.
    """
    left, right = _Side(a, inputs), _Side(b, inputs)
    rows = _anatomies(left.anatomy, right.anatomy)
    blocks, note = _blocks(left, right, inputs is None)
    return Difference(left.anatomy.name, right.anatomy.name, (*rows, *blocks), note)


class _Side:
    """One of the two models, its anatomy and its trace."""

    def __init__(self, given: nn.Module | str, inputs: Any) -> None:
        if isinstance(given, str):
            found = source.load(given)
            self.model, tries = found.model, found.inputs
            self.anatomy, self.traced = of_source(found, None)
        else:
            self.model, tries = given, source.inputs_of(given, inputs)
            self.traced = trace_model(given, tries)
            self.anatomy = anatomy_of(given, self.traced)

    @property
    def each(self) -> placement.StackTrace:
        """The stack with most blocks, of equals the last one."""
        return self.traced.main


def _anatomies(a: Anatomy, b: Anatomy) -> list[Row]:
    questions: tuple[tuple[str, Callable[[StackFound], object]], ...] = (
        ("blocks", lambda s: s.blocks),
        ("width", lambda s: s.width or "not told"),
        ("placement", lambda s: s.placement_words),
        ("order of norms", lambda s: "; ".join(s.formulas) or "not told"),
        (
            "norms",
            lambda s: "; ".join(f"{n.count} {n.label} ({n.words})" for n in s.norms) or "none",
        ),
        ("final norm", lambda s: "yes" if s.final_norm else s.final_words),
        ("embedding norm", lambda s: "yes" if s.embed_norm else "no"),
        ("QK-norm", lambda s: s.qk_words),
        ("gains", lambda s: "; ".join(s.scales) or "none"),
    )
    rows = [("stacks", str(len(a.stacks)), str(len(b.stacks)))]
    rows += [(what, str(ask(a.main)), str(ask(b.main))) for what, ask in questions]
    return [Row(*row, row[1] == row[2]) for row in rows]


def _blocks(a: _Side, b: _Side, draw: bool) -> tuple[list[Row], str]:
    """The stream and the gradient of each block, or a sentence why they were not compared."""
    if any(p.is_meta for side in (a, b) for p in side.model.parameters()):
        return (
            [],
            "Blocks were not compared: a model has no weights here. Give both as FILE.py:FUNCTION.",
        )
    if len(a.each.blocks) != len(b.each.blocks) or a.each.stream is None or b.each.stream is None:
        return (
            [],
            "Blocks were not compared: the two have different numbers of them, or no stream was told.",
        )
    args, kwargs = _arguments(a)
    args, kwargs = _drawn((args, kwargs), [a.model, b.model]) if draw else (args, kwargs)
    recorded = []
    for side in (a, b):
        try:
            recorded.append(_recorded(side, args, kwargs))
        except Exception as error:  # whatever a stranger's code raises
            return (
                [],
                f"Blocks were not compared: {type(side.model).__name__} does not take the input of A: "
                f"{placement.first_line(error)}",
            )
    rows = []
    for number, (left, right) in enumerate(zip(*recorded, strict=True)):
        for what, x, y in zip(("stream after", "gradient at"), left, right, strict=True):
            if x is None or y is None or x.shape != y.shape:
                first, second = (str(tuple(z.shape)) if z is not None else "none" for z in (x, y))
                rows.append(Row(f"{what} block {number}", first, second, False))
                continue
            size = float(torch.linalg.vector_norm(x))
            apart = float(torch.linalg.vector_norm(x - y)) / max(size, 1e-30)
            other = float(torch.linalg.vector_norm(y))
            words = (f"{size:.5g}", f"{other:.5g}, {apart:.2g} apart")
            same = apart <= CLOSE
            rows.append(
                Row(f"{what} block {number}", words[0], words[0] if same else words[1], same)
            )
    return rows, ""


def _arguments(side: _Side) -> tuple[tuple, dict]:
    """The arguments of a model's call on its small input."""
    seen: list[tuple[tuple, dict]] = []
    handle = side.model.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append((args, kwargs)), with_kwargs=True
    )
    try:
        with torch.no_grad():
            side.traced.run()
    finally:
        handle.remove()
    return seen[0]


def _drawn(value: Any, models: list[nn.Module]) -> Any:
    """The same arguments with drawn numbers: tokens below the smallest vocabulary, normal numbers."""
    random = torch.Generator().manual_seed(0)
    sizes = [
        m.num_embeddings for model in models for m in model.modules() if isinstance(m, nn.Embedding)
    ]

    def drawn(each: Any) -> Any:
        if isinstance(each, Tensor) and each.is_floating_point():
            return torch.randn(each.shape, generator=random).to(each)
        if isinstance(each, Tensor) and each.dtype == torch.long:
            return torch.randint(min(sizes, default=1), each.shape, generator=random).to(each)
        if isinstance(each, dict):
            return {k: drawn(v) for k, v in each.items()}
        return type(each)(map(drawn, each)) if isinstance(each, tuple | list) else each

    return drawn(value)


def _recorded(side: _Side, args: tuple, kwargs: dict) -> list[tuple[Tensor, Tensor | None]]:
    """The stream that leaves each block, and the gradient at it, in float32, in evaluation mode."""
    where, streams = side.each.stream, list[Tensor]()
    assert where is not None

    def keep(_: nn.Module, __: tuple, result: Any) -> None:
        leaving = where.leaving(result)
        if leaving is not None:
            leaving.requires_grad or leaving.requires_grad_()
            leaving.retain_grad()
            streams.append(leaving)

    before = {p: p.grad for p in side.model.parameters()}
    with ExitStack() as after, torch.enable_grad(), torch.random.fork_rng(devices=[]):
        for block in dict.fromkeys(side.each.stack.blocks):
            after.callback(block.register_forward_hook(keep).remove)
        after.enter_context(placement.evaluating(side.model))
        try:
            result = side.model(*args, **kwargs)
            outputs = [t for _, t in stack.results(result) if t.requires_grad]
            outputs[0].float().square().mean().backward()
        finally:
            for p, grad in before.items():
                p.grad = grad
    return [(x.detach().float(), x.grad.float() if x.grad is not None else None) for x in streams]
