"""What is known to go wrong with a placement, looked for in a model.

Each finding is one sentence with what was found and what follows from it. Nothing is said that a trace does
not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ..catalog import SCHEMES
from ..lessons.choose.facts import cells, measured
from . import norms, placement
from .report import Anatomy, StackFound
from .symbols import Normed, Symbol, bare

POST = ("post", "post_init", "post_scaled")
NEAR = 0.15
"""Relative difference up to which a matrix has GPT-2's smaller initial size."""


def lint(
    model: nn.Module, traced: placement.Trace, anatomy: Anatomy, optimizer: Any = None
) -> tuple[str, ...]:
    """All findings, each once."""
    findings: dict[str, None] = {}
    stacks = [each for each in traced.stacks if each.runs]
    for each, record in zip(stacks, anatomy.stacks, strict=True):
        if not each.blocks:
            continue
        for sentence in (
            *_final(each, record),
            *_twice(each),
            *_resp(record),
            *_post_depth(record),
            *_two_factors(model, each, record),
        ):
            findings[sentence] = None
    for sentence in (*_gammas(model, traced, optimizer), *_eps(model, traced)):
        findings[sentence] = None
    return tuple(findings)


def _final(each: placement.StackTrace, record: StackFound) -> Iterator[str]:
    if record.placement is None or record.final_norm is not None or each.goes_on:
        return
    key = "pre" if record.placement == "pre_nofinal" else record.placement
    if SCHEMES[key].final_norm:
        yield (
            f"{record.path}: {SCHEMES.label(key)} without a final norm: the stream leaves the last block "
            "unnormalised, and the logits grow with it"
        )


def _twice(each: placement.StackTrace) -> Iterator[str]:
    for block in each.blocks:
        for outer, inner in _nested(block.result):
            yield f"{each.stack.path}: two norms in a row, {outer} on the output of {inner}"
            return
    if each.final_norm is not None and isinstance(bare(each.blocks[-1].result), Normed):
        yield (
            f"{each.stack.path}: two norms in a row, {each.final_norm} on a stream that the last block has "
            "normalised"
        )


def _nested(symbol: Symbol) -> Iterator[tuple[str, str]]:
    """Norms on norms, without a gain between them."""
    for part in placement.sources(symbol):
        if isinstance(part, Normed) and isinstance(below := bare(part.of), Normed):
            yield part.name, below.name


def _resp(record: StackFound) -> Iterator[str]:
    if record.placement in ("resp", "resp_zero") and record.qk_norm == "none":
        yield (
            f"{record.path}: {SCHEMES.label(record.placement)} without QK-norm: attention reads the stream "
            "as it is, so its logits grow with the stream"
        )


def _post_depth(record: StackFound) -> Iterator[str]:
    """Post-LN deeper than the shipped map of depths and rates has measured, or than where it trained."""
    if record.placement not in POST:
        return
    deepest, trained = _measured()
    if record.blocks > deepest:
        yield (
            f"{record.path}: Post-LN with {record.blocks} blocks is outside of the map measured here, which "
            f"ends at {deepest} (small models, see the page Maps)"
        )
    elif record.blocks > trained:
        yield (
            f"{record.path}: Post-LN with {record.blocks} blocks: in the map measured here it trained at no "
            f"learning rate above {trained} blocks (small models, see the page Maps)"
        )


def _measured() -> tuple[int, int]:
    """The deepest Post-LN of the shipped map of depth and rate, and the deepest that learned."""
    depths, learned = {0}, {0}
    for key in ("torch", "xavier"):
        for depth in sorted({cell.config.depth for cell in cells(key, scheme="post")}):
            depths.add(depth)
            outcome = measured(key, "post", depth=depth)
            if outcome is not None and outcome.trained:
                learned.add(depth)
    return max(depths), max(learned)


def _two_factors(model: nn.Module, each: placement.StackTrace, record: StackFound) -> Iterator[str]:
    """A gain on the branch where the last matrix of the branch also starts at 1 / sqrt(2L) of the others."""
    judged = each.blocks[0].judged
    if judged is None or not any(b.scaled for s in judged.sublayers for b in s.branches):
        return
    parameters = [(n, p) for n, p in each.stack.blocks[0].named_parameters() if p.ndim == 2]
    if len(parameters) < 3 or any(p.is_meta for _, p in parameters):
        return
    sizes = {n: float(p.detach().float().std()) for n, p in parameters}
    usual = sorted(sizes.values())[len(sizes) // 2]
    small = usual / (2 * record.blocks) ** 0.5
    hit = [n for n, size in sizes.items() if small > 0 and abs(size / small - 1) < NEAR]
    if hit and record.blocks > 1:
        yield (
            f"{record.path}: its branches have a gain, and {hit[0]} also starts at 1/sqrt(2L) of the other "
            "matrices, as in GPT-2: branches are made smaller twice"
        )


def _gammas(model: nn.Module, traced: placement.Trace, optimizer: Any) -> Iterator[str]:
    """Frozen scales in a model that trains, and scales that weight decay pulls to 0."""
    parameters = dict(model.named_parameters())
    scales = {
        f"{path}.{norm.scale}": norm
        for path, norm in traced.norms.items()
        if norm.scale is not None
    }
    held = [n for n in scales if n in parameters and not parameters[n].requires_grad]
    trains = any(p.requires_grad for p in parameters.values() if p.ndim >= 2)
    if held and trains:
        yield f"the scale of {len(held)} norms is frozen while matrices train: {held[0]}"
    decay = {
        id(p): float(group.get("weight_decay", 0.0))
        for group in getattr(optimizer, "param_groups", ())
        for p in group["params"]
    }
    pulled = [
        n for n, norm in scales.items()
        if norm.gain == "gamma" and n in parameters and decay.get(id(parameters[n]), 0.0) > 0
    ]  # fmt: skip
    if pulled:
        yield f"weight decay pulls the scale of {len(pulled)} norms to 0: {pulled[0]}"


def _eps(model: nn.Module, traced: placement.Trace) -> Iterator[str]:
    """Norms whose eps is lost in the dtype: a token of zeros gives no number."""
    modules = dict(model.named_modules())
    wanted = _dtype(model)
    lost: dict[Any, str] = {}
    for path, norm in traced.norms.items():
        kind = (type(modules[path]), norm.eps)
        if norm.over != "token" or norm.key is None or kind in lost:
            continue
        dtype = wanted or norms.dtype_of(modules[path])
        lost[kind] = "" if norms.survives_zeros(modules[path], norm.width, dtype) else path
        if lost[kind]:
            name = str(dtype).removeprefix("torch.")
            yield f"{path}: its eps is lost in {name}: a token of zeros gives NaN or inf"


def _dtype(model: nn.Module) -> torch.dtype | None:
    """The dtype that a configuration of Hugging Face names."""
    named = getattr(getattr(model, "config", None), "dtype", None)
    return named if isinstance(named, torch.dtype) else None
