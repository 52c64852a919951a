"""The sublayer of a scheme as readable PyTorch, written from its record; a test executes it."""

from __future__ import annotations

from ..catalog import SCHEMES
from ..catalog.scheme import Place


def code(key: str, depth: int) -> str:
    """Source of `sublayer(x, branch, norms)`: what one attention or FFN sublayer computes.

    `branch` is attention or the FFN; `norms` holds a norm module for each slot that the scheme uses.
    """
    scheme = SCHEMES[key]
    s = scheme.slots(Place(max(1, depth // 2), depth, "ffn"))
    names = {c.gain: f"  # {c.formula}, L = {depth}" for c in scheme.constants}
    lines = [f"def sublayer(x, branch, norms):  # {scheme.label}"]
    lines.append(f"    skip = {_call('skip', s.norm_skip, 'x')}")
    lines += _gain("skip", s.skip_gain, names.get("skip_gain", ""))
    lines.append(f"    f = {_call('in', s.norm_in, 'x')}")
    lines += _gain("f", s.input_gain, names.get("input_gain", ""))
    lines.append(f"    f = {_call('out', s.norm_out, 'branch(f)')}")
    lines += _gain("f", s.branch_gain, names.get("branch_gain", ""))
    lines.append(f"    return {_call('main', s.norm_main, 'skip + f')}")
    return "\n".join(lines)


def _call(slot: str, there: bool, inner: str) -> str:
    return f'norms["{slot}"]({inner})' if there else inner


def _gain(name: str, value: float, comment: str) -> list[str]:
    return [] if value == 1.0 else [f"    {name} = {name} * {value!r}{comment}"]
