"""Formulas of a scheme's sublayers and their gradient paths in LaTeX, with the values of their constants.

`plain` writes LaTeX as one line of text for tables and terminals.
"""

from __future__ import annotations

import re
from typing import Any

from ...catalog import SCHEMES
from ...catalog.patterns import Blocks, SubLines, each, patterns
from ...catalog.scheme import BRANCHES, Constant, Gain, Place, Scheme, Slots


def formula(key: str, depth: int) -> SubLines:
    """(where, LaTeX of x after that sublayer): F is attention or the FFN, N the norm."""
    if equations := SCHEMES[key].equations:
        return [("attention and FFN" if i == 0 else "", line) for i, line in enumerate(equations)]
    return each(key, depth, _formula)


def gradient_path(key: str, depth: int) -> SubLines:
    """(where, LaTeX of the derivative of x+ by x), the factor of a gradient on its way down. Empty if
    several streams carry gradients."""
    if SCHEMES[key].equations:
        return []
    return each(key, depth, _gradient)


def _symbol(scheme: Scheme, slot: str, gain: Gain) -> str:
    """The name of a gain if the scheme has one, its value if it is not 1, else nothing."""
    if gain.is_one:
        return ""
    named = next((c.symbol for c in scheme.constants if c.gain == slot), "")
    return f"{named}\\," if named else f"{gain.value:.3g}\\,"


def _norm(there: bool, inner: str, mark: str = "") -> str:
    return f"\\mathrm{{N}}{mark}\\left({inner}\\right)" if there else inner


def _gamma(scheme: Scheme, slot: str, start: float) -> str:
    """The mark of a norm whose initial scale is not 1."""
    named = next((c.symbol for c in scheme.constants if c.gain == slot), "")
    return f"_{{{named}}}" if named and start != 1.0 else ""


def _letter(slots: Slots) -> str:
    """F, or F with norms or bound matrices inside."""
    if slots.spectral:
        return "F_{\\sigma}"
    inside = slots.norm_inner or slots.norm_qkv or slots.unit_qk or slots.head_gain
    return "F_{\\mathrm{N}}" if inside else "F"


def _fork(scheme: Scheme, s: Slots) -> str:
    """The input of skip path and branch: x itself, unless something acts on it before the fork."""
    u = _symbol(scheme, "stream_gain", s.stream_gain) + "x"
    if not s.embed_gain.is_zero:
        u += f" + {_symbol(scheme, 'embed_gain', s.embed_gain)}x_0"
    return _norm(s.norm_fork, u)


def _read(scheme: Scheme, s: Slots, u: str) -> str:
    """The input of the branch."""
    source = "x_b" if s.branch_reads == "block" else u
    mark = "_{\\mathrm{att}}" if s.shares_norm else _gamma(scheme, "gamma_in", s.gamma_in)
    return _symbol(scheme, "input_gain", s.input_gain) + _norm(s.norm_in, source, mark)


def _weights(scheme: Scheme, s: Slots) -> tuple[str, str]:
    """The factors of skip path and branch."""
    if s.mix == "lerp":
        return r"(1 - |\alpha|)\,", r"|\alpha|\,"
    if s.mix == "variance":
        return r"\sqrt{1 - s^2}\,", r"s\,"
    return (
        _symbol(scheme, "skip_gain", s.skip_gain),
        _symbol(scheme, "branch_gain", s.branch_gain),
    )


def _formula(scheme: Scheme, s: Slots) -> str:
    fork = _fork(scheme, s)
    u = "x" if fork == "x" else "u"
    a, g = _weights(scheme, s)
    terms = []
    if not s.skip_gain.is_zero:
        terms.append(a + _shifted(s, _norm(s.norm_skip, u), "skip"))
    if not s.block_gain.is_zero:
        terms.append(_symbol(scheme, "block_gain", s.block_gain) + "x_b")
    inside = f"{_letter(s)}\\left({_read(scheme, s, u)}\\right)"
    f = _norm(s.norm_out, inside, _gamma(scheme, "gamma_out", s.gamma_out))
    terms.append(g + _shifted(s, f, "branch"))
    total = _norm(s.norm_main, " + ".join(terms))
    if not s.main_gain.is_one:
        total = f"{_symbol(scheme, 'main_gain', s.main_gain)}\\left({total}\\right)"
    if s.gate:
        total = f"\\left(1 - \\mathrm{{SiLU}}(q)\\right)\\left({total}\\right)"
    return ("" if u == "x" else f"u = {fork},\\quad ") + f"x^{{+}} = {total}"


def _shifted(s: Slots, x: str, where: str) -> str:
    return f"\\left({x} + b_{{\\mathrm{{{where}}}}}\\right)" if s.shifts else x


def _gradient(scheme: Scheme, s: Slots) -> str:
    a, g = _weights(scheme, s)
    terms = []
    if not s.skip_gain.is_zero:
        terms.append(a + ("J_{\\mathrm{N}}" if s.norm_skip else "I"))
    if s.branch_reads == "stream":
        out = "J_{\\mathrm{N}}\\," if s.norm_out else ""
        scale = _symbol(scheme, "input_gain", s.input_gain).removesuffix("\\,")
        inner = (f"\\,{scale}" if scale else "") + ("\\,J_{\\mathrm{N}}" if s.norm_in else "")
        terms.append(f"{g}{out}J_{{{_letter(s)}}}{inner}")
    total = " + ".join(terms)
    before = _symbol(scheme, "main_gain", s.main_gain) + (
        "J_{\\mathrm{N}}\\," if s.norm_main else ""
    )
    fork = _symbol(scheme, "stream_gain", s.stream_gain).removesuffix("\\,")
    after = ("\\,J_{\\mathrm{N}}" if s.norm_fork else "") + (f"\\,{fork}" if fork else "")
    if before or after:
        total = (
            f"{before}\\left({total}\\right){after}" if len(terms) > 1 else before + total + after
        )
    return f"\\frac{{\\partial x^{{+}}}}{{\\partial x}} = {total}"


def constants(key: str, depth: int) -> list[str]:
    """LaTeX of each named constant of a scheme with its value, or its range over the blocks."""
    return [_constant(SCHEMES[key], c, depth) for c in SCHEMES[key].constants]


def _constant(scheme: Scheme, c: Constant, depth: int) -> str:
    values = [v for group in patterns(scheme.key, depth) for v in _values(scheme, c, group, depth)]
    if values and isinstance(values[0], str):
        return f"{c.symbol} = {c.formula}"
    low, high = min(values, default=1.0), max(values, default=1.0)
    numbers = f"{low:.4g}" if low == high else f"{high:.4g} \\ldots {low:.4g}"
    return f"{c.symbol} = {c.formula}" + ("" if numbers == c.formula else f" = {numbers}")


def _values(scheme: Scheme, c: Constant, group: Blocks, depth: int) -> list[Any]:
    """A constant in all blocks of a group, in the branches that use it; a string if it is learned."""
    values = []
    if c.gain == "logit_gain":
        return ["learned"] if scheme.logit_gain.learned else [scheme.logit_gain.value]
    for branch in BRANCHES:
        places = [Place(b, depth, branch) for b in range(group.first, group.last + 1)]
        if c.gain == "weight_gain":
            matrix = "value" if branch == "attention" else "up"
            values += [scheme.weight_gain(place, matrix) for place in places]
            continue
        gains = [getattr(scheme.slots(place), c.gain) for place in places]
        if any(isinstance(g, Gain) and (g.learned or g.ramp) for g in gains):
            return ["learned"]
        if any(g != getattr(Slots(), c.gain) for g in gains):
            values += [g.value if isinstance(g, Gain) else g for g in gains]
    return values


# LaTeX as plain text.

SIGNS = {
    r"\odot": "⊙", r"\cdot": "·", r"\sum": "Σ", r"\lfloor": "⌊", r"\rfloor": "⌋", r"\lVert": "‖",
    r"\rVert": "‖", r"\ldots": "…", r"\quad": " ", r"\epsilon": "ε", r"\alpha": "α", r"\beta": "β",
    r"\gamma": "γ", r"\kappa": "κ", r"\lambda": "λ", r"\mu": "μ", r"\omega": "ω", r"\psi": "ψ",
    r"\top": "ᵀ", r"\le": "≤", r"\textstyle": "", r"\exp": "exp",
    r"\sigma": "σ", r"\tanh": "tanh", r"\max": "max", r"\min": "min", r"\ln": "ln",
    r"\varphi": "φ", r"\pi": "π", r"\cos": "cos", r"\sin": "sin", r"\otimes": "⊗",
}  # fmt: skip
RAISED = {"ᵀ": "ᵀ", "+": "⁺", "2": "²", "-1": "⁻¹"}
GROUP = r"\{([^{}]*)\}"


def plain(latex: str) -> str:
    """The formula without LaTeX: "γ ⊙ (x - μ) / √(σ² + ε) + β"."""
    text = re.sub(r"\\left|\\right", "", latex)
    text = re.sub(r"\\[,; ]", " ", text)
    text = re.sub(r"\\hat\{x\}", "x̂", text)
    text = re.sub(r"\\tilde\{x\}", "x̃", text)
    text = re.sub(r"\\tilde\{\\gamma\}", "γ̃", text)
    text = re.sub(r"\\(?:mathrm|text)" + GROUP, r"\1", text)
    for command, sign in SIGNS.items():
        text = re.sub(re.escape(command) + r"(?![a-zA-Z])", sign, text)
    text = re.sub(r"\^" + GROUP, lambda m: RAISED.get(m[1], f"^({m[1]})"), text)
    text = re.sub(r"\^2", "²", text)
    before = ""
    while text != before:  # from the innermost braces outwards
        before = text
        text = re.sub(r"_" + GROUP, r"_\1", text)
        text = re.sub(r"\\sqrt" + GROUP, r"√(\1)", text)
        text = re.sub(r"\\frac" + GROUP + GROUP, lambda m: f"{_whole(m[1])} / {_whole(m[2])}", text)
    text = re.sub(r"⌊ ?(.*?) ?⌋", r"⌊\1⌋", re.sub(r"‖ ?(.*?) ?‖", r"‖\1‖", text))
    return re.sub(r" +", " ", text).strip()


def _whole(part: str) -> str:
    """In parentheses, unless it is a single letter, call or root."""
    inner = part
    while (shorter := re.sub(r"\([^()]*\)", "", inner)) != inner:
        inner = shorter
    return part if re.fullmatch(r"[\w\u0302]+|√", inner) else f"({part})"
