"""Claims about norm placement, each a record with its experiment and its rule. Torch-free.

record   what a claim is; `records/` has them, one module a family
evidence what each run says; numbers  what each seed gives
rule     numbers -> verdict
drive    claim -> runs -> result; stored  results as files that ship
figure   a result's figure, with closed forms as lines
"""

from .record import Claim
from .records import CLAIMS

__all__ = ["CLAIMS", "Claim"]
