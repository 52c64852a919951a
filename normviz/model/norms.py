"""The module of each norm key, [..., width] to [..., width].

The classes of `normviz/catalog/norms/*_torch.py` are found by their names; the records beside them name them.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from ..catalog import NORMS, norms
from ..catalog.norm import Norm
from .discovery import classes
from .marks import as_is, drawn

Builder = Callable[..., nn.Module]
NOTHING = nn.Identity()
"""The module where there is no norm, one for all, since a block has a dozen such places."""
OWN = classes(norms.__name__, norms.__path__, "_torch")
NAMES = {"nn": nn, **OWN}
"""The names that the code of a record may use."""


def builder(norm: Norm) -> Builder:
    """The function that makes a norm's module from width, eps and the run's steps, by the code of its record.

    Raises NameError at the call where the code names a class that is in no such module.
    """
    code = norm.code.format(width="width", eps="eps", steps="steps")
    return eval(f"lambda width, eps, steps=0: {code}", NAMES)


BUILDERS: dict[str, Builder] = {norm.key: builder(norm) for norm in NORMS} | {
    "none": lambda width, eps, steps=0: NOTHING
}


def make_norm(key: str, width: int, steps: int = 0) -> nn.Module:
    """A fresh norm over `width` channels whose parameters start at the values of its record; its matrices
    are marked to be drawn. `steps` is that of the run, 0 for a norm outside of one.

    Raises KeyError for a key without a module.
    """
    norm = BUILDERS[key](width, NORMS[key].eps, steps)
    if norm is NOTHING:
        return norm
    for matrix in NORMS[key].drawn:
        drawn(norm.get_submodule(matrix.name.removesuffix(".weight")), "norm")
    return as_is(norm)


SYMBOLS = (r"\gamma", "g", "w")
KINDS = (nn.LayerNorm, nn.RMSNorm, *OWN.values())
SCALES = sorted(
    {parameter.name for norm in NORMS for parameter in norm.learns if parameter.symbol in SYMBOLS}
)


def scales(module: nn.Module) -> list[nn.Parameter]:
    """The learned scales of all norms in a module: gamma, ScaleNorm's one number, the w of a scale 1 + w."""
    norms = [norm for norm in module.modules() if isinstance(norm, KINDS)]
    parameters = [getattr(norm, name, None) for norm in norms for name in SCALES]
    return [p for p in parameters if isinstance(p, nn.Parameter)]
