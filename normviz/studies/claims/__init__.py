"""Claims about norm placement: each is a record with its experiment and its rule. Torch-free.

record    the type of a claim; `records/` has the claims, one module per family
evidence  quantities of a run; numbers  one number per seed
rule      numbers -> verdict
drive     claim -> runs -> result; stored  results as files that ship
figure    a result's figure, with closed forms as lines
"""

from .record import Claim
from .records import CLAIMS

__all__ = ["CLAIMS", "Claim"]
