"""Claims about norm placement: each is a record with its experiment and its rule. Torch-free.

record      the type of a claim; `records/` has the claims, one module per family
evidence    quantities of a run; numbers  one number per seed; choice  rates chosen on the other seeds
rule        numbers -> verdict; correction  what is left of all verdicts' parts as there are many
drive       claim -> runs -> result, with lab_process for what no training run records
stored      results as files that ship; ship  the runs behind them
figure      a result's figure, with closed forms as lines; sentences  words of the terminal and the page
"""

from .record import Claim
from .records import CLAIMS

__all__ = ["CLAIMS", "Claim"]
