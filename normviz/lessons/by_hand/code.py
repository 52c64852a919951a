"""The example as a runnable PyTorch or Keras module that gives the page's numbers.

Both leave their outputs in `y_layer`, `y_rms` and `y_batch`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .formulas import Array, Bools, keras_momentum
from .steps import Batch, Work


def torch(hand_work: Work) -> str:
    """Source of a module for PyTorch 2.4 or newer."""
    n, eps = hand_work.example.features, hand_work.example.eps
    return f"""\
import torch
from torch import nn

f64 = {{"dtype": torch.float64}}  # as on the page
x = torch.tensor({_rows(hand_work.after.x)}, **f64)
gamma = torch.tensor({_list(hand_work.example.gamma)}, **f64)
beta = torch.tensor({_list(hand_work.example.beta)}, **f64)

layer_norm = nn.LayerNorm({n}, eps={eps!r}, **f64)
rms_norm = nn.RMSNorm({n}, eps={eps!r}, **f64)
batch_norm = nn.BatchNorm1d(
    {n}, eps={eps!r}, momentum={hand_work.example.momentum!r}, **f64
)
with torch.no_grad():
    for norm in (layer_norm, rms_norm, batch_norm):
        norm.weight.copy_(gamma)
    # RMSNorm has no beta.
    for norm in (layer_norm, batch_norm):
        norm.bias.copy_(beta)

y_layer = layer_norm(x)
y_rms = rms_norm(x)
{_torch_batch(hand_work)}
for y in (y_layer, y_rms, y_batch):
    print(y.detach())
"""


def _torch_batch(hand_work: Work) -> str:
    real = (
        f"real = torch.tensor({_bools(hand_work.after.counted)})\n"
        if _masks(hand_work.after)
        else ""
    )
    given = "x[real]" if real else "x"
    if hand_work.refused:
        return f"""\
{real}try:
    y_batch = batch_norm({given})
except ValueError as refusal:
    print(refusal)
    # By the formula one row has variance 0, and y is beta.
    y_batch = beta.expand_as({given})"""
    if hand_work.example.mode == "train":
        return f"{real}y_batch = batch_norm({given})"
    seen, lines = _seen(hand_work, "torch.tensor({}, **f64)", given)
    passes = f"""\
{seen}for _ in range({hand_work.running.passes}):
    batch_norm({lines})
"""
    passes = passes if hand_work.running.passes else ""
    return f"{real}{passes}batch_norm.eval()\ny_batch = batch_norm({given})"


def keras(hand_work: Work) -> str:
    """Source of a module for Keras 3, for any of its backends."""
    eps = hand_work.example.eps
    return f"""\
import os

# Or tensorflow, or jax.
os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
from keras import layers

# Keras computes its norms in float32: about six digits agree.
x = np.array({_rows(hand_work.after.x)})
gamma = np.array({_list(hand_work.example.gamma)})
beta = np.array({_list(hand_work.example.beta)})

layer_norm = layers.LayerNormalization(epsilon={eps!r})
rms_norm = layers.RMSNormalization(epsilon={eps!r})
batch_norm = layers.BatchNormalization(
    momentum={keras_momentum(hand_work.example.momentum)!r},  # PyTorch's is {hand_work.example.momentum!r}
    epsilon={eps!r},
)
for norm in (layer_norm, rms_norm, batch_norm):
    norm.build(x.shape)
layer_norm.set_weights([gamma, beta])
rms_norm.set_weights([gamma])
start = [np.zeros_like(gamma), np.ones_like(gamma)]
batch_norm.set_weights([gamma, beta, *start])

y_layer = layer_norm(x)
y_rms = rms_norm(x)
{_keras_batch(hand_work)}
for y in (y_layer, y_rms, y_batch):
    print(y)
"""


def _keras_batch(hand_work: Work) -> str:
    real = (
        f"real = np.array({_bools(hand_work.after.counted)})\n" if _masks(hand_work.after) else ""
    )
    mask = ", mask=real" if real else ""
    if hand_work.example.mode == "train":
        return f"{real}y_batch = batch_norm(x, training=True{mask})"
    seen, given = _seen(hand_work, "np.array({})", "x")
    passes = ""
    if hand_work.running.passes:
        decay = f"{keras_momentum(hand_work.example.momentum)!r} ** {hand_work.running.passes}"
        passes = f"""\
{seen}for _ in range({hand_work.running.passes}):
    batch_norm({given}, training=True{mask})
# Keras updates with the biased variance, PyTorch and this page
# with the unbiased one. Without these lines you get Keras' own.
left, n = {decay}, {hand_work.running.rows}
variance = batch_norm.moving_variance
variance.assign(left + (variance - left) * n / (n - 1))
"""
    return f"{real}{passes}y_batch = batch_norm(x, training=False{mask})"


def _masks(batch: Batch) -> bool:
    return not batch.counted.all()


def _seen(hand_work: Work, form: str, given: str) -> tuple[str, str]:
    """(a line that defines the batch of the training passes, its name); no line where it is x."""
    same = hand_work.example.experiment == "padding" or np.array_equal(
        hand_work.before.x, hand_work.after.x
    )
    if same:
        return "", given
    return f"seen = {form.format(_rows(hand_work.before.x))}  # in training\n", "seen"


def _list(values: Sequence[float]) -> str:
    return f"[{', '.join(repr(float(v)) for v in values)}]"


def _rows(x: Array) -> str:
    """A matrix, one row per line."""
    rows = [_list(row) for row in x.tolist()]
    return f"[{rows[0]}]" if len(rows) == 1 else "[\n    " + ",\n    ".join(rows) + ",\n]"


def _bools(values: Bools) -> str:
    return f"[{', '.join(str(bool(v)) for v in values)}]"
