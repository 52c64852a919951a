"""The anatomy of a model: its stacks, placements, norms and scales, from one small forward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from . import doctor, placement, scheme_of, source, stack
from .hooks import EagerStance
from .judge import Branch, Judged, Sublayer
from .report import Anatomy, NormFound, StackFound
from .symbols import Stream

SHOWN = 6
"""Formulas of a stack that are shown."""


def inspect(
    model: nn.Module | str,
    inputs: Any = None,
    *,
    blocks: str | None = None,
    name: str = "",
    optimizer: Any = None,
) -> Anatomy:
    """The anatomy of a model, given itself or named as for `normviz inspect`, from a forward pass on small
    inputs.

    A model may be a whole one, one block, a bare Sequential of blocks, or a module that goes through lists of
    sublayers itself. `inputs` is an input of the model, or a table of them by name, where it needs others
    than tokens; `blocks` the path of its list of blocks, where that can't be told; `name` what it is called
    in the result; `optimizer` one, or a list of them, whose weight decay is looked at. Of these only `blocks`
    counts for a model that is named. The model's state, mode and random generators stay as they are. Raises
    ValueError with a sentence.
    """
    if isinstance(model, str):
        return inspect_named(model, blocks)
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model is a {type(model).__name__}: give a torch.nn.Module, a model type such as "
            '"qwen3", the path of a config.json, or "file.py:function"'
        )
    traced = trace_model(model, source.inputs_of(model, inputs), blocks)
    return anatomy_of(model, traced, name, optimizer)


inspect_model = inspect
"""Another name of `inspect`, which code that uses Python's own `inspect` too can import."""


def inspect_named(named: str, blocks: str | None = None) -> Anatomy:
    """The anatomy of what a visitor names (see `source.load`). Raises ValueError with a sentence."""
    return of_source(source.load(named), blocks)[0]


def inspect_config(text: str) -> Anatomy:
    """The anatomy of a Hugging Face configuration, from its JSON. Raises ValueError with a sentence."""
    return of_source(source.from_config(source.parse_config(text)), None)[0]


def of_source(model_source: source.Source, blocks: str | None) -> tuple[Anatomy, placement.Trace]:
    """The anatomy and the trace of what was named. Raises ValueError with a sentence."""
    starts = {
        name: float(p.detach().double().mean())
        for name, p in model_source.model.named_parameters()
        if not p.is_meta and p.ndim <= 2 and p.numel()
    }
    if any(p.is_meta for p in model_source.model.parameters()):
        model_source.model.to("meta")
    traced = trace_model(model_source.model, model_source.inputs, blocks)
    for path, norm in traced.norms.items():
        if norm.start is None and norm.scale is not None:
            traced.norms[path] = replace(norm, start=starts.get(f"{path}.{norm.scale}"))
    return anatomy_of(model_source.model, traced, model_source.name), traced


def trace_model(
    model: nn.Module, inputs: tuple[Callable[[], Any], ...], blocks: str | None = None
) -> placement.Trace:
    """Follow a model with the first of its inputs that reaches a block. Raises ValueError."""
    stacks = stack.find_stacks(model, blocks)
    is_meta = any(p.is_meta for p in model.parameters())
    loops = () if is_meta or blocks is not None else stack.loops_of(model, stacks)
    eager = EagerStance()  # compiled modules show nothing, and would be compiled for this pass
    try:
        return _traced(model, inputs, stacks, loops)
    finally:
        eager.remove()


def _traced(
    model: nn.Module,
    inputs: tuple[Callable[[], Any], ...],
    stacks: Sequence[stack.Stack],
    loops: Sequence[stack.Stack],
) -> placement.Trace:
    failed: placement.Untraced | None = None
    for tried in filter(None, (stacks, loops)):
        for run in inputs:
            try:
                traced = placement.trace(model, run, tried)
            except placement.Untraced as error:
                failed = failed or error
                continue
            return _as_a_whole(model, run, loops, traced) if tried is stacks else traced
    raise failed or placement.Untraced(
        f"no input is known for {type(model).__name__}: give one, as in inputs={{...}}, or return it "
        "beside the model from the function"
    )


def _as_a_whole(
    model: nn.Module, run: Callable[[], Any], loops: Sequence[stack.Stack], traced: placement.Trace
) -> placement.Trace:
    """The trace, or that of the one module that calls several lists side by side, if only that is told."""
    ran = [each for each in traced.stacks if each.runs]
    if len(ran) < 2 or len(loops) != 1 or any(scheme_of.scheme_of(each).key for each in ran):
        return traced
    whole = placement.trace(model, run, loops)
    return whole if scheme_of.scheme_of(whole.stacks[0]).key else traced


def anatomy_of(
    model: nn.Module, traced: placement.Trace, name: str = "", optimizer: Any = None
) -> Anatomy:
    """The record of what a trace shows."""
    stacks = tuple(stack_found(each, traced) for each in traced.stacks if each.runs)
    count = sum(p.numel() for p in model.parameters())
    anatomy = Anatomy(type(model).__name__, name or type(model).__name__, count, stacks)
    return replace(anatomy, findings=doctor.findings(model, traced, stacks, optimizer))


def stack_found(each: placement.StackTrace, traced: placement.Trace) -> StackFound:
    """The record of one stack."""
    named = scheme_of.scheme_of(each)
    if not each.blocks:
        count = len(each.stack.blocks)
        return StackFound(each.stack.path, each.stack.kinds, count, None, None, named.why)
    formulas = dict.fromkeys(text for block in each.blocks for text in formulas_of(block))
    scales = dict.fromkeys(text for block in each.blocks for text in scales_of(block, traced))
    return StackFound(
        each.stack.path,
        each.stack.kinds,
        each.layers,
        each.stream.width if each.stream else None,
        named.key,
        named.why,
        named.alike,
        named.exact,
        _few([*formulas]),
        norms_of(each, traced),
        each.final_norm,
        each.embed_norm,
        qk_of(each.blocks, traced),
        _few([*scales]),
        _notes(each, traced),
    )


def _few(texts: list[str]) -> tuple[str, ...]:
    more = len(texts) - SHOWN
    return (*texts[:SHOWN], *([f"and {more} more"] if more > 0 else []))


def _notes(each: placement.StackTrace, traced: placement.Trace) -> tuple[str, ...]:
    """What could not be followed."""
    notes = []
    hidden = sorted({_relative(name, each) for block in each.blocks for name in block.hidden})
    if hidden:
        notes.append(
            f"the inside of {', '.join(hidden[:4])}: what it does depends on values, and there are none"
        )
    if each.stack.single and each.layers == 1:
        notes.append("no list of blocks: one block was read")
    elif each.stack.single:
        notes.append("no list of blocks that run: the module was read as a whole")
    if each.stream is not None and not each.stream.verified and len(each.blocks) > 1:
        notes.append("what leaves a block is changed before it enters the next one")
    if each.stream is not None and (aside := each.stream.others - each.stream.rivals):
        notes.append(
            f"what else passes from block to block: {aside} tensor{'s' * (aside > 1)} of another width"
        )
    if traced.error:
        notes.append(f"the model after its blocks: {traced.error}")
    return tuple(notes)


def _relative(name: str, each: placement.StackTrace) -> str:
    """The path of a module inside of its block."""
    return name.removeprefix(f"{each.stack.path}.").split(".", 1)[-1]


def norms_of(each: placement.StackTrace, traced: placement.Trace) -> tuple[NormFound, ...]:
    """The norms of the blocks, without those of queries and keys, by what they compute."""
    count: Counter[NormFound] = Counter()
    for block in each.blocks:
        queries = scheme_of.qk_names(block)
        ends = {each.final_norm, each.embed_norm} if each.stack.single else set()
        for name in sorted(block.norm_names - queries - ends):
            probed_norm = traced.norms.get(name)
            if probed_norm is None:
                kind = name.split("(")[0]
                record = NormFound(
                    placement.NORM_CALLS.get(kind),
                    kind if kind.endswith("by hand") else f"a call of {kind}",
                    None,
                    "unknown",
                    None,
                    0,
                )
            else:
                record = NormFound(
                    probed_norm.key,
                    probed_norm.label,
                    probed_norm.eps,
                    probed_norm.gain,
                    probed_norm.start,
                    0,
                )
            count[record] += 1
    return tuple(replace(norm, count=n) for norm, n in count.most_common())


def qk_of(blocks: Sequence[placement.BlockTrace], traced: placement.Trace) -> str | None:
    """none, head, full; None where attention is one module that hides its queries and keys. Of blocks
    that differ, those with such norms count."""
    norms = [norm for block in blocks for norm in scheme_of.qk_norms(block)]
    if not norms:
        return "none" if any(block.products for block in blocks) else None
    widths = {(traced.norms[n.name].width if n.name in traced.norms else d) == d for n, d in norms}
    return "head" if True in widths else "full"


# What a block computes, in words.


def formulas_of(block: placement.BlockTrace) -> list[str]:
    """The formula of each sublayer; of a block that the rules do not decide, the whole of it."""
    if block.judged is None:
        whole = scheme_of.written(block) if not isinstance(block.result, Stream) else ""
        return [f"block: {whole}"] if whole and len(whole) < 200 else []
    return [
        f"{_role(sublayer)}: {_formula(sublayer, *_norms_of_stream(block.judged, number))}"
        for number, sublayer in enumerate(block.judged.sublayers)
    ]


def _norms_of_stream(judged: Judged, number: int) -> tuple[bool, bool]:
    """Whether a sublayer begins with a norm on the stream itself, and whether it ends with one. The norm
    between two sublayers is written as the next one's where the block begins with such a norm."""
    sublayer = judged.sublayers[number]
    if judged.enters is None:
        return False, sublayer.norm_main is not None
    before = judged.sublayers[number - 1].norm_main if number else judged.enters
    return before is not None, sublayer is judged.sublayers[-1] and sublayer.norm_main is not None


def _role(sublayer: Sublayer) -> str:
    return " and ".join(dict.fromkeys(_letter(branch)[1] for branch in _in_order(sublayer)))


def _in_order(sublayer: Sublayer) -> list[Branch]:
    """The branches of a sublayer: attention first, whatever is added first."""
    order = [*placement.ROLES.values(), placement.OTHER]
    return sorted(sublayer.branches, key=lambda branch: order.index(_letter(branch)))


def _letter(branch: Branch) -> tuple[str, str]:
    return placement.ROLES.get(branch.role, placement.OTHER)


def _formula(sublayer: Sublayer, begins: bool, ends: bool) -> str:
    x = "N(x)" if begins else "x"
    branches = []
    for branch in _in_order(sublayer):
        inner = f"{_letter(branch)[0]}({f'N({x})' if branch.norm_in else x})"
        inner = f"N({inner})" if branch.norm_out else inner
        branches.append(f"{_factor(branch.scaled)}{inner}")
    whole = f"{_factor(sublayer.skip_scaled)}{x} + {' + '.join(branches)}"
    return f"N({whole})" if ends else whole


def _factor(by: str) -> str:
    if not by:
        return ""
    return "g " if scheme_of.as_number(by) is None else f"{by} "


def scales_of(block: placement.BlockTrace, traced: placement.Trace) -> list[str]:
    """The gains of a block, in words."""
    if block.judged is None:
        return []
    gains = []
    for sublayer in block.judged.sublayers:
        every = [(f"{_letter(b)[1]} branch", b.scaled) for b in sublayer.branches]
        for what, by in (*every, ("skip path", sublayer.skip_scaled)):
            if by:
                gains.append(f"{what} times {_factor_words(by, traced)}")
    if block.judged.scaled:
        gains.append(f"block times {_factor_words(block.judged.scaled, traced)}")
    return gains


def _factor_words(by: str, traced: placement.Trace) -> str:
    """A factor: a number, or a learned parameter with the mean that it has now."""
    name = by.removeprefix("1/")
    parameter = traced.scales.get(name)
    if parameter is None:
        return by
    kind = "a learned number" if parameter.numel() == 1 else "a learned number a channel"
    short = name.rsplit(".", 1)[-1]
    if parameter.is_meta:
        return f"{kind} ({short})"
    return f"{kind} ({short}, now {float(parameter.detach().float().mean()):.3g})"
