"""The module of each norm key, [..., width] to [..., width]."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from ...catalog import NORMS
from ..marks import kept
from .batch import BatchNorm
from .group import GroupNorm
from .length import ScaleNorm, UnitLength
from .power import PowerNorm
from .rms import CRMSNorm, PartialRMSNorm, RMSNorm1p
from .seed import SeeDNorm
from .squash import BHyT, Derf, DyT

Builder = Callable[[int, float], nn.Module]
NOTHING = nn.Identity()
"""Where there is no norm; one for all, since a block has a dozen such places."""

BUILDERS: dict[str, Builder] = {
    "layernorm": lambda width, eps: nn.LayerNorm(width, eps),
    "layernorm_nobias": lambda width, eps: nn.LayerNorm(width, eps, bias=False),
    "layernorm_nonparam": lambda width, eps: nn.LayerNorm(width, eps, elementwise_affine=False),
    "groupnorm": GroupNorm,
    "rmsnorm": lambda width, eps: nn.RMSNorm(width, eps),
    "rmsnorm_1p": RMSNorm1p,
    "rmsnorm_noaffine": lambda width, eps: nn.RMSNorm(width, eps, elementwise_affine=False),
    "prmsnorm": PartialRMSNorm,
    "crmsnorm": CRMSNorm,
    "seednorm": SeeDNorm,
    "scalenorm": ScaleNorm,
    "l2": UnitLength,
    "dyt": DyT,
    "derf": Derf,
    "bhyt": BHyT,
    "batchnorm": BatchNorm,
    "powernorm": PowerNorm,
    "none": lambda width, eps: NOTHING,
}


def make_norm(key: str, width: int) -> nn.Module:
    """A fresh norm over `width` channels whose parameters start where its record says.

    Raises KeyError for a key without a module.
    """
    norm = BUILDERS[key](width, NORMS[key].eps)
    return norm if norm is NOTHING else kept(norm)
