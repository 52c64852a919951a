"""Which norm a class is, from its code: what it subtracts and which parameters it learns."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from .program import Program

NONE = ("False", "None")
CENTRES = re.compile(r"-\s*(self\.)?\w*(mean|mu)\b|\.var\(|layer_norm\(|std\(")
NORMALISES = re.compile(r"rsqrt|sqrt\(|-0\.5|layer_norm\(|rms_norm\(|F\.normalize")
NAMED = re.compile(r"Norm(1P|2d|PerHead|Gated|Layer)?$")
ZERO_CENTRED = re.compile(r"1(\.0)?\s*\+\s*self\.weight|self\.weight[\w.()]*\s*\+\s*1")


def norm_kind(program: Program, kind: str, arguments: dict[str, str]) -> str | None:
    """Key of the norm (one of `catalog.NORMS`, or layernorm_1p); None if the class is not a norm."""
    if kind in ("rms_norm", "layer_norm"):
        return {"rms_norm": "rmsnorm_noaffine", "layer_norm": "layernorm_nonparam"}[kind]
    if kind not in program.classes:
        return _outside(kind, arguments)
    if not NAMED.search(kind):
        return None  # RobertaPreLayerNormAttention
    code = _code(program, kind)
    bases = program.bases(kind)
    if not NORMALISES.search(code) and not any(_outside(b.split(".")[-1], {}) for b in bases):
        return "layernorm" if "nn.LayerNorm(" in code else None
    centred = CENTRES.search(code) or any("LayerNorm" in base for base in bases)
    name = "layernorm" if centred else "rmsnorm"
    if ZERO_CENTRED.search(code):
        return f"{name}_1p"
    inherits = any("Norm" in base for base in bases)
    if arguments.get("with_scale") in NONE or ("self.weight" not in code and not inherits):
        return "layernorm_nonparam" if centred else "rmsnorm_noaffine"
    if centred and "self.bias" not in code and not inherits:
        return "layernorm_nobias"
    return name


@lru_cache(maxsize=64)
def _code(program: Program, kind: str) -> str:
    """Source of the class and its bases in the file, without comments and docstrings."""
    parts = []
    for name in (kind, *program.bases(kind)):
        if node := program.classes.get(name):
            body = [
                part
                for part in ast.walk(node)
                if isinstance(part, ast.Assign | ast.AnnAssign | ast.Return | ast.AugAssign)
            ]
            parts += [ast.unparse(part) for part in body]
    return "\n".join(parts)


def _outside(kind: str, arguments: dict[str, str]) -> str | None:
    """Key of a norm of PyTorch."""
    if kind.endswith("RMSNorm"):
        bare = arguments.get("elementwise_affine") in NONE
        return "rmsnorm_noaffine" if bare else "rmsnorm"
    if kind.endswith("LayerNorm"):
        if arguments.get("elementwise_affine") in NONE:
            return "layernorm_nonparam"
        return "layernorm_nobias" if arguments.get("bias") in NONE else "layernorm"
    return None
