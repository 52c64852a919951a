"""LaTeX of one sublayer, of its gradient path, and the values of its constants at a depth."""

from __future__ import annotations

from ..catalog import SCHEMES
from ..catalog.scheme import Place, Scheme, Slots


def _slots(scheme: Scheme, depth: int) -> Slots:
    """The sublayer in the middle of the stack, which stands for all."""
    return scheme.slots(Place(max(1, depth // 2), depth, "ffn"))


def _symbol(scheme: Scheme, gain: str, value: float) -> str:
    """The name of a gain if the scheme has one, its value if it is not 1, else nothing."""
    named = next((c.symbol for c in scheme.constants if c.gain == gain), "")
    return f"{named}\\," if named else "" if value == 1.0 else f"{value:.3g}\\,"


def _norm(there: bool, inner: str) -> str:
    return f"\\mathrm{{N}}\\left({inner}\\right)" if there else inner


def formula(key: str, depth: int) -> str:
    """LaTeX of x after one sublayer F of a scheme (F is attention or FFN, N the norm)."""
    scheme = SCHEMES[key]
    s = _slots(scheme, depth)
    skip = _symbol(scheme, "skip_gain", s.skip_gain) + _norm(s.norm_skip, "x")
    inside = _symbol(scheme, "input_gain", s.input_gain) + _norm(s.norm_in, "x")
    branch = _norm(s.norm_out, f"F\\left({inside}\\right)")
    branch = _symbol(scheme, "branch_gain", s.branch_gain) + branch
    return f"x^{{+}} = {_norm(s.norm_main, f'{skip} + {branch}')}"


def gradient_path(key: str, depth: int) -> str:
    """LaTeX of the derivative of x+ by x: what a gradient is multiplied with on its way down."""
    scheme = SCHEMES[key]
    s = _slots(scheme, depth)
    skip = _symbol(scheme, "skip_gain", s.skip_gain) + ("J_{\\mathrm{N}}" if s.norm_skip else "I")
    branch = "".join(
        (
            _symbol(scheme, "branch_gain", s.branch_gain),
            "J_{\\mathrm{N}}\\," if s.norm_out else "",
            "J_F",
            "\\,J_{\\mathrm{N}}" if s.norm_in else "",
        )
    )
    total = f"\\left({skip} + {branch}\\right)"
    return "\\frac{\\partial x^{+}}{\\partial x} = " + (
        f"J_{{\\mathrm{{N}}}}\\,{total}"
        if s.norm_main
        else total.removeprefix("\\left(").removesuffix("\\right)")
    )


def constants(key: str, depth: int) -> list[str]:
    """LaTeX of each named constant of a scheme with its value at a depth."""
    scheme = SCHEMES[key]
    place = Place(max(1, depth // 2), depth, "ffn")
    slots = scheme.slots(place)
    found = []
    for c in scheme.constants:
        weight = c.gain == "weight_gain"
        value = scheme.weight_gain(place) if weight else getattr(slots, c.gain)
        found.append(f"{c.symbol} = {c.formula} = {value:.4g}")
    return found
