"""A record's LaTeX as one line of plain text, for tables and terminals."""

from __future__ import annotations

import re

SIGNS = {
    r"\odot": "⊙", r"\cdot": "·", r"\sum": "Σ", r"\lfloor": "⌊", r"\rfloor": "⌋", r"\lVert": "‖",
    r"\rVert": "‖", r"\ldots": "…", r"\quad": " ", r"\epsilon": "ε", r"\alpha": "α", r"\beta": "β",
    r"\gamma": "γ", r"\kappa": "κ", r"\lambda": "λ", r"\mu": "μ", r"\omega": "ω", r"\psi": "ψ",
    r"\top": "ᵀ", r"\le": "≤", r"\textstyle": "", r"\exp": "exp",
    r"\sigma": "σ", r"\tanh": "tanh", r"\max": "max", r"\min": "min", r"\ln": "ln",
}  # fmt: skip
RAISED = {"ᵀ": "ᵀ", "+": "⁺", "2": "²", "-1": "⁻¹"}
GROUP = r"\{([^{}]*)\}"


def plain(latex: str) -> str:
    """The formula without LaTeX: "γ ⊙ (x - μ) / √(σ² + ε) + β"."""
    text = re.sub(r"\\left|\\right", "", latex)
    text = re.sub(r"\\[,; ]", " ", text)
    text = re.sub(r"\\hat\{x\}", "x̂", text)
    text = re.sub(r"\\tilde\{x\}", "x̃", text)
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
