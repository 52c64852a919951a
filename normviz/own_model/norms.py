"""Which norm a module computes, told by its answers to random inputs and never by its name.

The module is copied, its parameters get random values, and it runs in its own dtype. An answer that stays
when the input grows shows a norm; one that stays when a constant is added shows that it centres; the
outputs that follow one changed input show what it averages over. A bounded map of each channel by itself is
a tanh or an error function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from ..catalog import NORMS
from .stack import channel_axis

Gain = Literal["none", "gamma", "1 + w", "number", "1 + number", "unknown"]
LIMIT = 1 << 22
"""A module with more parameters is no norm; it is not tried."""
TINY = 1e-12


def growth(power: float) -> str:
    """How an output follows its input, in words."""
    size = f"|x|^{abs(power):g}" if abs(power) != 1 else "|x|"
    return f"grows as {size}" if power > 0 else f"falls as 1/{size}"


@dataclass(frozen=True)
class ProbedNorm:
    """What a module computes, as far as its answers tell.

    key      key of the catalogue's norm; None for a norm that the catalogue does not have
    gain     how it scales: not, by its parameter (gamma), by 1 + its parameter, by one learned
             number, or by 1 + that
    scale    name of the parameter of the gain; None where there is none
    start    mean of that parameter as the module has it; None on the meta device
    shift    whether it adds a learned number to each channel
    eps      the number that keeps the root from 0, from its answers to small inputs; None if they don't tell
    width    the number of channels that one statistic reads
    centres  whether it subtracts a mean
    size     the constant that its output is multiplied by, beside its scale: 1 in a norm
    power    how its output grows with its input: 0 of a norm, 2 as |x|^2, -1 as 1/|x|
    over     "token", "group" of a token's channels, "positions" of one sequence, "batch", or "channel" for
             a map of each number by itself
    """

    key: str | None
    gain: Gain
    scale: str | None
    shift: bool
    eps: float | None
    width: int
    centres: bool
    over: Literal["token", "group", "positions", "batch", "channel"]
    start: float | None = None
    size: float = 1.0
    power: float = 0.0

    @property
    def label(self) -> str:
        """Its name in words."""
        if self.power:
            return f"looks like a norm, but its output {growth(self.power)}"
        if self.key is None:
            centred = "that centres" if self.centres else "without centring"
            return f"a norm {centred} over each {self.over}, not in the catalogue"
        return NORMS.label(self.key)


def tell(
    module: nn.Module,
    shape: Sequence[int],
    call: Callable[[nn.Module, Tensor], object] = lambda module, x: module(x),
) -> ProbedNorm | None:
    """The norm that a module is on inputs of a shape; None if it is no norm. Identity has the key "none".

    `call` calls a copy of the module with the tensor that is tried, where it needs more arguments.
    The module and the random generators stay as they are.
    """
    if sum(p.numel() for p in module.parameters()) > LIMIT or math.prod(shape) < 2:
        return None
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            norm = _Trial(module, shape, call).norm()
    except Exception:  # timm's norms raise AssertionError, einops' KeyError
        return None
    scale = dict(module.named_parameters()).get(norm.scale or "") if norm else None
    if norm is None or scale is None or scale.is_meta:
        return norm
    return replace(norm, start=float(scale.detach().double().mean()))


def answer(result: object) -> Tensor | None:
    """The tensor that a call gave, alone or as the one tensor of a tuple."""
    every = result if isinstance(result, tuple) else (result,)
    tensors = [tensor for tensor in every if isinstance(tensor, Tensor)]
    return tensors[0] if len(tensors) == 1 else None


def at_zeros(module: nn.Module, width: int, dtype: torch.dtype) -> str:
    """What a norm in a dtype gives for a token of zeros, if that or its gradient is no number; else empty."""
    x = torch.zeros(1, 1, width, dtype=dtype, requires_grad=True)
    try:
        y = answer(_with_ones(module, dtype)(x))
        if y is None:
            return ""
        if not y.isfinite().all():
            return "a token of zeros gives NaN or inf"
        (gradient,) = torch.autograd.grad(y.float().sum(), x)
        return "" if gradient.isfinite().all() else "the gradient at a token of zeros is NaN or inf"
    except Exception:  # timm's norms raise AssertionError, einops' KeyError
        return ""


def overflow(module: nn.Module, width: int) -> tuple[int, float] | None:
    """The least power of two |x| from which a norm in float16 gives another answer than at |x| = 1, with the
    size of that answer; None if there is none or it can't be tried."""
    x = (1 - 2 * (torch.arange(width) % 2)).half().view(1, 1, -1)
    try:
        with torch.no_grad():
            copy = _with_ones(module, torch.float16)
            usual = answer(copy(x))
            if usual is None:
                return None
            for power in range(1, 16):
                y = answer(copy(x * 2**power))
                if y is not None and not bool((y - usual).abs().mean() < 0.1 * usual.abs().mean()):
                    return 2**power, float(y.abs().mean())
    except Exception:  # timm's norms raise AssertionError, einops' KeyError
        pass
    return None


def _with_ones(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy in a dtype whose parameters are 1."""
    copy = bare_copy(module).to(dtype)
    with torch.no_grad():
        for p in copy.parameters():
            p.fill_(1.0)
    return copy


def dtype_of(module: nn.Module) -> torch.dtype:
    """The dtype of a module's first floating parameter or buffer, else float32."""
    every = (*module.parameters(), *module.buffers())
    return next((tensor.dtype for tensor in every if tensor.is_floating_point()), torch.float32)


class _Trial:
    """A copy of a module with random parameters, and its answers."""

    def __init__(
        self, module: nn.Module, shape: Sequence[int], call: Callable[[nn.Module, Tensor], object]
    ) -> None:
        self.call, self.shape, self.dtype = call, tuple(shape), dtype_of(module)
        self.module = module
        self.tolerance = 3e-2 if torch.finfo(self.dtype).bits < 32 else 2e-3
        self.random = torch.Generator().manual_seed(0)
        self.copy = bare_copy(module).train()
        for p in self.copy.parameters():
            p.copy_(0.4 + 0.9 * torch.rand(p.shape, generator=self.random))
        self.parameters = {name: p.detach().double() for name, p in self.copy.named_parameters()}

    def __call__(self, x: Tensor) -> Tensor:
        """The module's answer in float64, from the same state each time."""
        y = answer(self.call(deepcopy(self.copy), x.to(self.dtype)))
        if y is None or y.shape != x.shape or not y.is_floating_point():
            raise ValueError("it is no map of a tensor to one of the same shape")
        return y.double()

    def drawn(self) -> Tensor:
        """Normal numbers, exact in the module's dtype."""
        x = 2 * torch.randn(self.shape, generator=self.random)
        return x.to(self.dtype).double()

    def near(self, a: Tensor, b: Tensor) -> bool:
        """Whether two answers agree up to the rounding of the module's dtype."""
        size = b.square().mean().sqrt()
        return bool(((a - b).square().mean().sqrt() <= self.tolerance * size + TINY).item())

    def norm(self) -> ProbedNorm | None:
        x = self.drawn()
        y = self(x)
        if not y.isfinite().all():
            return None
        if not self.parameters and torch.equal(y, x):
            return ProbedNorm("none", "none", None, False, None, self.shape[-1], False, "channel")
        beta = (y + self(-x)) / 2  # an even part: the shift, for all odd maps
        if self.near(self(4 * x), y):
            return self._gated(x, y) or self._statistic(x, y, beta)
        other = self._bounded(x) or self._seed(x) or self._powered(x, y - beta, beta)
        return other or self._of_few(1024 * x, beta)

    def _of_few(self, x: Tensor, beta: Tensor) -> ProbedNorm | None:
        """A norm of two channels, which are often so alike that eps counts: told by large inputs."""
        if self.dtype == torch.float16 or not self.near(self(4 * x), y := self(x)):
            return None
        size = (y - beta).abs().flatten(0, -2)
        if not self.near(size, size.median(0).values.expand_as(size)):
            return None  # else each channel is its scale or minus its scale
        norm = self._statistic(x, y, beta)
        return norm if norm is not None and norm.width <= 2 else None

    def _powered(self, x: Tensor, y: Tensor, beta: Tensor) -> ProbedNorm | None:
        """A norm with a wrong power: each token, centred or not, times a number that depends on the token.

        Without its root it falls as 1/|x|; with a reciprocal too many it grows as |x|^2.
        """
        far = self(4 * x) - beta
        grown = float(far.square().mean().sqrt() / y.square().mean().sqrt().clamp_min(TINY))
        power = round(math.log2(max(grown, TINY))) / 2  # in halves, of an input 4 times as large
        if power in (0.0, 1.0) or not self.near(far, y * 4**power):
            return None
        spread, last = self._spread(x, y + beta)
        over = _over(spread, last, self.shape)
        for centres in (False, True) if over == "token" else ():
            z = x - x.mean(-1, keepdim=True) if centres else x
            rms = z / z.square().mean(-1, keepdim=True).sqrt()
            unit = (y * rms).sum(-1, keepdim=True)
            gain = (y / torch.where(rms.abs() < 0.05, torch.nan, rms)).flatten(0, -2)
            ratio = gain / gain[:, :1]
            if bool((unit == 0).any()) or not self._is_constant(ratio):
                continue
            names = [n for n, p in self.parameters.items() if p.numel() == x.shape[-1]]
            shift = not self.near(beta + y, y)
            kind: Gain = "gamma" if names else "none"
            name = names[0] if names else None
            return ProbedNorm(
                None, kind, name, shift, None, x.shape[-1], centres, "token", power=power
            )
        return None

    def _is_constant(self, ratio: Tensor) -> bool:
        """Whether each channel has one ratio over all tokens."""
        middle = ratio.nanmedian(0).values.expand_as(ratio)
        known = ratio.isfinite() & middle.isfinite()
        return bool(known.any()) and self.near(ratio[known], middle[known])

    # Norms: the answer stays when the input grows.

    def _statistic(self, x: Tensor, y: Tensor, beta: Tensor) -> ProbedNorm | None:
        spread, last = self._spread(x, y)
        over = _over(spread, last, self.shape)
        if over is None:
            return None
        if spread == {1} and (x.ndim == 4 or channel_axis(self.module, self.shape) == 1):
            return self._channels_first(x)
        moved = x + (1 + torch.arange(x.shape[0]).double()).view(-1, *[1] * (x.ndim - 1))
        if over in ("batch", "positions"):
            moved = x + 2.0
        moved = moved.to(self.dtype).double()
        centres = self.near(self(moved), y)
        shift = not self.near(beta + y, y)
        if over in ("batch", "positions"):
            key = {
                ("batch", True): "batchnorm", ("batch", False): "powernorm",
                ("positions", True): "groupnorm",
            }.get((over, centres))  # fmt: skip
            first = next(iter(self.parameters), None)
            return ProbedNorm(
                key,
                "none" if first is None else "gamma",
                first,
                shift,
                self._eps_of_many(x, y, beta, centres, sorted(spread)),
                x.shape[-1],
                centres,
                over,
            )
        key, gain, name, size = self._row(x, y - beta, centres, shift, over, last)
        eps = (
            self._eps(x, y, beta, centres)
            if over == "token"
            else self._eps_of_many(x, y, beta, centres, [-1], last)
        )
        width = x.shape[-1] if over == "token" else last
        return ProbedNorm(key, gain, name, shift, eps, width, centres, over, size=size)

    def _gated(self, x: Tensor, y: Tensor) -> ProbedNorm | None:
        """GatedNorm: the RMSNorm u times sigmoid(W2 SiLU(W1 u))."""
        d = x.shape[-1]
        matrices = [p for p in self.parameters.values() if p.ndim == 2]
        narrow = next((p for p in matrices if p.shape[1] == d != p.shape[0]), None)
        widen = next((p for p in matrices if p.shape[0] == d != p.shape[1]), None)
        if narrow is None or widen is None:
            return None
        for name, p in self.parameters.items():
            u = p * x / x.square().mean(-1, keepdim=True).sqrt() if p.shape == (d,) else None
            if u is not None:
                hidden = torch.nn.functional.silu(u @ narrow.T)
                if self.near(u * torch.sigmoid(hidden @ widen.T), y):
                    return ProbedNorm("gatednorm", "gamma", name, False, None, d, False, "token")
        return None

    def _spread(self, x: Tensor, y: Tensor, scale: float = 1.0) -> tuple[set[int], int]:
        """The axes along which outputs follow one changed input, and how many of the last axis do."""
        changed = x.clone()
        place = (*(n // 2 for n in x.shape[:-1]), 0)
        changed[place] += 6 * scale if x[place] >= 0 else -6 * scale
        moves = (self(changed) - y).abs() > 1e-4 * y.abs().mean()
        if not moves.any():  # only signs are left, of two channels
            high, low = changed.clone(), changed.clone()
            high[place] = 9 * x.abs().max()
            low[place] = -high[place]
            moves = (self(high) - self(low)).abs() > 1e-4 * y.abs().mean()
        spread = {axis for axis in range(x.ndim) if _others(moves, axis, place)}
        return spread, int(moves[place[:-1]].sum())

    def _channels_first(self, x: Tensor) -> ProbedNorm | None:
        """A norm of channels that come second, [B, C, H, W] or [B, C, T]: the same with channels last."""
        norm = tell(_Turned(self.module), (x.shape[0], *x.shape[2:], x.shape[1]))
        if norm is None or norm.scale is None:
            return norm
        return replace(norm, scale=norm.scale.removeprefix("inner."))

    def _row(
        self, x: Tensor, y: Tensor, centres: bool, shift: bool, over: str, last: int
    ) -> tuple[str | None, Gain, str | None, float]:
        """Key, gain, its parameter, and constant factor of a norm of each token."""
        z = x - x.mean(-1, keepdim=True) if centres else x
        if over == "group":
            z = _grouped(x, last) if centres else x
        rms = z / z.square().mean(-1, keepdim=True).sqrt()
        if over == "group":
            gain, name, _, size = self._gain(z, y)
            return ("groupnorm" if centres else None), gain, name, size
        y, rms = self._heads_last(y, rms)
        gains = y / torch.where(rms.abs() < 0.05, torch.nan, rms)
        flat = gains.reshape(-1, gains.shape[-1])
        each = flat.nanmedian(0).values
        if self._is_one(flat / each, rms):
            gain, name, mean, size = self._gain(rms, y)
            return _row_key(centres, shift, gain, mean, x.shape[-1]), gain, name, size
        if centres:
            return None, "unknown", None, 1.0
        return *self._weighted(x, y, rms), 1.0

    def _is_one(self, ratio: Tensor, rms: Tensor) -> bool:
        """Whether ratios are 1 up to rounding, for large numbers too."""
        known = ratio[ratio.isfinite()]
        large = ratio[(rms.reshape(ratio.shape).abs() > 1.5) & ratio.isfinite()]
        off = abs(float(large.median()) - 1) if large.numel() else 0.0
        return self.near(known, torch.ones_like(known)) and off < max(self.tolerance / 3, 1e-3)

    def _gain(self, rms: Tensor, y: Tensor) -> tuple[Gain, str | None, float, float]:
        """How y = gain * rms is made of the parameters, the parameter's name, the mean gain, and the
        constant in it."""
        flat, unit = y.reshape(-1, y.shape[-1]), rms.reshape(-1, y.shape[-1])
        each = (flat * unit).sum(0) / unit.square().sum(0).clamp(min=TINY)
        mean = float(each.mean())
        vectors = {n: p.flatten() for n, p in self.parameters.items() if p.numel() > 1}
        for name, p in vectors.items():
            if len(each) % p.numel() == 0:
                p = p.repeat(len(each) // p.numel()) if p.numel() < len(each) else p
                kinds: tuple[tuple[Gain, Tensor], ...] = (("gamma", p), ("1 + w", 1 + p))
                for kind, value in kinds:
                    share = self.near(each / each.mean(), value / value.mean())
                    if share or self.near(each, value):
                        return kind, name, mean, mean / float(value.mean())
        for name, p in self.parameters.items():
            if p.numel() == 1 and bool((each - mean).abs().max() <= 4 * self.tolerance * abs(mean)):
                root = len(each) ** 0.5
                plain, offset = (
                    any(abs(value / known - 1) < self.tolerance for known in (1.0, root, 1 / root))
                    for value in (mean / float(p), mean / (1 + float(p)))
                )
                if offset and not plain:
                    return "1 + number", name, mean, mean / (1 + float(p))
                return "number", name, mean, mean / float(p)
        return ("unknown" if vectors else "none"), None, mean, 1.0 if vectors else mean

    def _heads_last(self, y: Tensor, rms: Tensor) -> tuple[Tensor, Tensor]:
        """Both with heads and channels as one axis, where each head has a gain of its own."""
        for p in self.parameters.values():
            heads = p.numel() // y.shape[-1]
            for axis in range(y.ndim - 1) if heads > 1 else ():
                if y.shape[axis] == heads and p.numel() == heads * y.shape[-1]:
                    return y.movedim(axis, -2).flatten(-2), rms.movedim(axis, -2).flatten(-2)
        return y, rms

    def _weighted(self, x: Tensor, y: Tensor, rms: Tensor) -> tuple[str | None, Gain, str | None]:
        """Norms that divide by another size than the RMS: of a part of the channels, with the sum, of
        scaled channels; or that squash the RMSNorm of a token."""
        if (squashed := self._squashed(y, rms)) is not None:
            return squashed
        ratio = (y / x).reshape(-1, x.shape[-1])
        inner = ratio / ratio[:, :1]
        if not self.near(inner, inner.median(0).values.expand_as(inner)):
            return None, "unknown", None
        # y_i = c_i x_i / s(x): s^2 is a quadratic form of x, found by least squares.
        rows, d = ratio.shape[0], x.shape[-1]
        squares = x.reshape(rows, d).square()
        total = x.reshape(rows, d).sum(1).square()
        size = (1 / ratio[:, 0]).square()
        part = squares[:, : max(1, d // 16)].mean(1)
        completed = (squares.sum(1) + total) / (d + 1)
        names = [n for n, p in self.parameters.items() if p.numel() == d]
        first = names[0] if names else None
        for key, estimate in (("prmsnorm", part), ("crmsnorm", completed)):
            if self.near(size / estimate / (size / estimate).median(), torch.ones_like(estimate)):
                return key, ("gamma" if names else "none"), first
        for name in names:
            weighted = (squares * self.parameters[name].square()).mean(1)
            if self.near(size / weighted / (size / weighted).median(), torch.ones_like(weighted)):
                other = next((n for n in names if n != name), name)
                return "preaffine", "gamma", other
        return None, "unknown", None

    def _squashed(self, y: Tensor, rms: Tensor) -> tuple[str | None, Gain, str | None] | None:
        """A tanh of the RMSNorm."""
        for name, p in self.parameters.items():
            if p.numel() != y.shape[-1]:
                continue
            u = y / p
            if bool((u.abs() < 1).all()):
                slope = torch.atanh(u) / rms
                slope = slope[(rms.abs() > 0.3) & (u.abs() < 0.95)]
                if self.near(slope, slope.median().expand_as(slope)):
                    return "bhyt", "gamma", name
        return None

    def _eps(self, x: Tensor, y: Tensor, beta: Tensor, centres: bool) -> float | None:
        """From the answers to small inputs: y(s x) = y(x) / sqrt(1 + eps / (s^2 v)), v the variance of a
        token; the median over tokens."""
        d, y = x.shape[-1], y - beta
        z = x - x.mean(-1, keepdim=True) if centres else x
        v = z.square().mean(-1).flatten()
        measurements: list[float] = []
        for power in (-5, -8, -11, -14, -17, -20, -24):
            s = 2.0**power
            small = (self(s * x) - beta).reshape(-1, d)
            part = (small * y.reshape(-1, d)).sum(1) / y.reshape(-1, d).square().sum(1)
            if 0.05 < float(part.median()) < 0.97:
                measurements.append(float((v * s * s * (1 / part.square() - 1)).median()))
        return _rounded(measurements)

    def _eps_of_many(
        self, x: Tensor, y: Tensor, beta: Tensor, centres: bool, axes: list[int], last: int = 0
    ) -> float | None:
        """The same of a norm over other axes than a token's, or over `last` channels of it, number by
        number."""
        y = y - beta
        z = x.unflatten(-1, (-1, last)) if last else x
        z = z - z.mean(axes, keepdim=True) if centres else z
        v = z.square().mean(axes, keepdim=True).expand_as(z).reshape(x.shape)
        keep = y.abs() > y.square().mean().sqrt() / 2
        measurements: list[float] = []
        for power in (-5, -8, -11, -14, -17, -20, -24):
            s = 2.0**power
            part = ((self(s * x) - beta) / y)[keep]
            if 0.05 < float(part.median()) < 0.97:
                each = v[keep] * s * s * (1 / part.square() - 1)
                low, middle, high = each.quantile(torch.tensor([0.25, 0.5, 0.75]).double()).tolist()
                if high < 1.2 * low:  # else it is a norm over other numbers than these
                    measurements.append(middle)
        return _rounded(measurements)

    # Maps of each number by itself.

    def _bounded(self, x: Tensor) -> ProbedNorm | None:
        """DyT or Derf: bounded, each number by itself, with a learned scale."""
        if not self.parameters or not self.near(self(4096 * x), self(8192 * x)):
            return None
        spread, _ = self._spread(x, self(x))
        spread |= self._spread(4096 * x, self(4096 * x), 4096)[0]  # a length may be cut off there
        high, low = self(torch.full_like(x, 2.0**13)), self(torch.full_like(x, -(2.0**13)))
        gamma, beta = (high - low) / 2, (high + low) / 2
        if spread or bool((gamma.abs() < 1e-3).any()):
            return None
        fits = {}
        for key, inverse in (("dyt", torch.atanh), ("derf", torch.erfinv)):
            grid = torch.linspace(-1.6, 1.6, 33).to(self.dtype).double()
            us = torch.stack([(self(torch.full_like(x, float(v))) - beta) / gamma for v in grid])
            use = us.abs().flatten(1).amax(1) < 0.93
            v, w = grid[use], inverse(us[use]).flatten(1).mean(1)
            design = torch.stack([v, torch.ones_like(v)], 1)
            fit = torch.linalg.lstsq(design, w[:, None]).solution
            fits[key] = float((design @ fit - w[:, None]).square().mean())
        key = min(fits, key=lambda kind: fits[kind])
        if fits[key] > self.tolerance:
            return None
        names = [n for n, p in self.parameters.items() if p.numel() == x.shape[-1]]
        name = names[0] if names else None
        shift = bool(beta.abs().max() > 1e-3)
        return ProbedNorm(
            key, "gamma" if names else "number", name, shift, None, 1, False, "channel"
        )

    def _seed(self, x: Tensor) -> ProbedNorm | None:
        """SeeDNorm: the RMSNorm times a scale that depends on the token and is bounded."""
        rms = x / x.square().mean(-1, keepdim=True).sqrt()
        keep = rms.abs() > 0.1
        plus, minus = (self(x) / rms), (self(-x) / -rms)
        even = (plus + minus) / 2
        flat = torch.where(keep, even, torch.nan).reshape(-1, x.shape[-1])
        if not self.near(even[keep], flat.nanmedian(0).values.expand_as(even)[keep]):
            return None
        far, farther = self(4096 * x), self(8192 * x)
        if not self.near(far, farther) or self.near(plus[keep], minus[keep]):
            return None
        each = flat.nanmedian(0).values
        for name, p in self.parameters.items():
            if p.numel() == len(each) and self.near(each, p.flatten()):
                return ProbedNorm(
                    "seednorm", "gamma", name, False, None, x.shape[-1], False, "token"
                )
        return None


class _Turned(nn.Module):
    """A norm of channels that come second, on channels that come last."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.movedim(-1, 1)).movedim(1, -1)


def bare_copy(module: nn.Module) -> nn.Module:
    """A copy on the CPU without hooks, also of a module on the meta device."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    memo: dict[int, object] = {}
    for inner in module.modules():
        for name in hooks:
            memo[id(getattr(inner, name))] = type(getattr(inner, name))()
    for tensor in (*module.parameters(), *module.buffers()):
        value = (
            torch.zeros(tensor.shape, dtype=tensor.dtype)
            if tensor.is_meta
            else tensor.detach().cpu().clone()
        )
        is_parameter = isinstance(tensor, nn.Parameter)
        memo[id(tensor)] = nn.Parameter(value, value.is_floating_point()) if is_parameter else value
    copy = deepcopy(module, memo)
    for inner in copy.modules():
        if hasattr(vars(inner).get("forward"), "forwards"):  # of `placement`, on the meta device
            del inner.forward
    return copy


def _others(moves: Tensor, axis: int, place: tuple[int, ...]) -> bool:
    """Whether outputs move at other places along an axis than the changed one."""
    places = [i for i in range(moves.shape[axis]) if i != place[axis]]
    return bool(moves.index_select(axis, torch.tensor(places, dtype=torch.long)).any())


def _over(
    spread: set[int], last: int, shape: tuple[int, ...]
) -> Literal["token", "group", "positions", "batch"] | None:
    """What one statistic is taken over, from the axes along which outputs follow one input."""
    if 0 in spread and spread != {0, len(shape) - 1}:
        return "batch"
    if spread == {len(shape) - 1}:
        return "token" if last > 0.75 * shape[-1] else "group"  # rounding hides some
    if spread == {1} and len(shape) == 4:
        return "token"
    if spread and 0 not in spread:
        return "positions"
    return "batch" if 0 in spread else None


def _grouped(x: Tensor, size: int) -> Tensor:
    """Each group of channels of each token with mean 0 and RMS 1."""
    z = x.unflatten(-1, (-1, size))
    z = z - z.mean(-1, keepdim=True)
    return (z / z.square().mean(-1, keepdim=True).sqrt()).flatten(-2)


def _row_key(centres: bool, shift: bool, gain: Gain, mean: float, width: int) -> str | None:
    """Key of a norm of each token by its RMS or standard deviation; `mean` is that of its gains."""
    is_length = abs(mean * width**0.5 - 1) < 0.05
    match centres, gain:
        case True, "none":
            return "layernorm_nonparam"
        case True, "gamma":
            return "layernorm" if shift else "layernorm_nobias"
        case True, "1 + w":
            return "layernorm_1p"
        case False, "none":
            return "l2" if is_length and width > 1 else "rmsnorm_noaffine"
        case False, "gamma":
            return None if shift else "rmsnorm"
        case False, "1 + w":
            return None if shift else "rmsnorm_1p"
        case False, "number" | "1 + number":
            return "scalenorm"
    return None


def _rounded(measurements: Sequence[float]) -> float | None:
    """One number with one digit, if several measurements agree on it."""
    if not measurements:
        return None
    middle = sorted(measurements)[len(measurements) // 2]
    if middle <= 0 or any(
        abs(math.log(measurement / middle)) > 0.7 for measurement in measurements if measurement > 0
    ):
        return None
    return float(f"{middle:.0e}")
