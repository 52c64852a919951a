"""Where a norm sits in a recurrent net, as torch-free records. `normviz.model.recurrent` builds them."""

from __future__ import annotations

from dataclasses import dataclass

from .registry import Registry


@dataclass(frozen=True)
class Cell:
    """A placement in a recurrent net.

    in_cell   norms inside the cell, at each time step
    between   a norm of each layer's output, before the next layer or the head reads it
    rnn, lstm the formula of one time step in LaTeX; N is the norm
    """

    key: str
    label: str
    sentence: str
    trouble: str
    source: str
    rnn: str
    lstm: str
    in_cell: bool = False
    between: bool = False
    family: str = "Recurrent nets"

    def formula(self, family: str) -> str:
        """The time step of an rnn or lstm, in LaTeX."""
        return self.lstm if family == "lstm" else self.rnn


PLAIN_RNN = r"h_t = \tanh(W_h h_{t-1} + W_x x_t + b)"
PLAIN_LSTM = (
    r"(i, f, g, o) = W_h h_{t-1} + W_x x_t + b, \quad "
    r"c_t = \sigma(f) c_{t-1} + \sigma(i) \tanh(g), \quad h_t = \sigma(o) \tanh(c_t)"
)
NORM_RNN = r"h_t = \tanh(N(W_h h_{t-1} + W_x x_t) + b)"
NORM_LSTM = (
    r"(i, f, g, o) = N(W_h h_{t-1}) + N(W_x x_t) + b, \quad "
    r"c_t = \sigma(f) c_{t-1} + \sigma(i) \tanh(g), \quad h_t = \sigma(o) \tanh(N(c_t))"
)
OUT = r", \quad y_t = N(h_t)"
BA = "Ba et al. 2016, arXiv:1607.06450"

CELLS: Registry[Cell] = Registry(
    "placement of a recurrent net",
    (
        Cell(
            "cell_none",
            "Cell without a norm",
            "Neither the cell nor what leaves a layer is normed.",
            "The same matrix acts at each time step, so a signal grows or fades with the length.",
            "Elman 1990; Hochreiter and Schmidhuber 1997",
            PLAIN_RNN,
            PLAIN_LSTM,
        ),
        Cell(
            "pre_activation",
            "Norm in the cell",
            "At each time step the summed inputs are normed before the activation. An LSTM norms its two "
            "products apart, and its cell before the output.",
            "The norm's statistics are computed again at each time step.",
            f"{BA}, equation 4; for the LSTM equations 20 to 22 and ryankiros/layer-norm",
            NORM_RNN,
            NORM_LSTM,
            in_cell=True,
        ),
        Cell(
            "between_layers",
            "Norm between layers",
            "What leaves a layer is normed before the next layer or the head reads it. The recurrence is as "
            "without a norm.",
            "The path through time has no norm.",
            "a norm outside of the cell, as in stacked recurrent nets; NormViz",
            PLAIN_RNN + OUT,
            PLAIN_LSTM + OUT,
            between=True,
        ),
        Cell(
            "cell_and_layers",
            "Norm in both",
            "Both: norms on the pre-activation at each time step, and a norm of what leaves a layer.",
            "Two norms a time step.",
            f"{BA}, and a norm between layers; NormViz",
            NORM_RNN + OUT,
            NORM_LSTM + OUT,
            in_cell=True,
            between=True,
        ),
    ),
)
