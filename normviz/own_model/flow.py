"""What happens inside of a block during a recorded step, told by the flow of data and not by names.

`Flow` sees every operation of one call of a block. A tensor is of the *stream* if it was made from the
block's input without a matrix, and of a *branch* if a matrix has acted on it. The sum of one of each is a
residual sum. Attention is a softmax over logits, or PyTorch's fused kernel, whose logits are computed a
second time for a sample. What hides its operations, as kernels of other libraries do, is not recorded.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .placement import LIKE, multiplies
from .stack import tensors

ENTRIES = 2**20
"""Attention logits that are measured in a block at most: of the first sequences, and of heads spread evenly
where those of one sequence are more."""
MASKED = 1e20
"""A logit below minus this is of a masked position."""
OF_THE_FIRST = LIKE | {"__getitem__", "index_select", "gather"}
"""Operations whose result has values of their first tensor alone; others say where, or in which shape."""
FILLED = {"zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"}
"""Operations that read the shape of a tensor and no value."""
ADDS = ("add", "add_", "__add__", "__radd__", "__iadd__")
SOFTMAX = ("softmax", "_softmax")
STREAM, BRANCH = "stream", "branch"


@dataclass(frozen=True)
class Origin:
    """The matrix that made a tensor, the axis of its outputs, and which of them the tensor holds.

    `made` is the operation's result while the tensor is still a view of it.
    """

    weight: Tensor
    axis: int
    made: Tensor | None = None
    channels: frozenset[int] | None = None

    def of(self, view: Tensor) -> Origin:
        """The origin of a view of the result, with its channels counted from its strides."""
        if self.made is None:
            return self
        row, first = self.made.shape[-1], int(view.storage_offset() - self.made.storage_offset())
        held = {first % row}
        for size, stride in zip(view.shape, view.stride(), strict=True):
            if stride % row:
                held = {(at + i * stride) % row for at in held for i in range(size)}
        return Origin(self.weight, self.axis, None, frozenset(held))

    def is_seen_by(self, tensor: Tensor) -> bool:
        """Whether a tensor is a view of the result."""
        made = self.made
        return made is not None and (
            tensor is made
            or tensor.untyped_storage().data_ptr() == made.untyped_storage().data_ptr()
        )


@dataclass
class Tag:
    """What is known of a tensor: of the stream or a branch; its matrix; of logits those of query and key."""

    kind: str
    origin: Origin | None = None
    pair: tuple[Origin | None, Origin | None] | None = None


@dataclass
class Plan:
    """Which parameters of a block are what, found in its first call: those of query and key with the axis and
    the numbers of their outputs, and the last matrix of the sublayer without attention."""

    query_key: list[tuple[str, int, tuple[int, ...] | None]] = field(default_factory=list)
    last_ffn: str | None = None


@dataclass
class Sublayer:
    """A residual sum and what led to it.

    reads   RMS of what the branch's first matrix reads
    ratio, cosine   size of the branch over that of the skip path, and the mean cosine of the two
    total   RMS of the sum
    last    the last matrix before the sum
    """

    reads: Tensor | None = None
    ratio: Tensor | None = None
    cosine: Tensor | None = None
    total: Tensor | None = None
    has_attention: bool = False
    last: Tensor | None = None


class Flow(TorchFunctionMode):
    """One call of a block. With `learns` it also finds the block's parameters; `measures`: it measures.
    `channels` is the stream's axis of channels.

    sums        the residual sums so far; `now` what led to the next one
    attention   largest logit, entropy and weight on the first position, of each attention
    query_key   where the two operands of each attention are from
    """

    def __init__(self, stream: Tensor, learns: bool, measures: bool, channels: int = -1) -> None:
        super().__init__()
        self.learns, self.measures, self.channels = learns, measures, channels
        self.size, self.width = stream.numel(), stream.shape[-1]
        self.batch = stream.shape[0] if stream.ndim > 2 else 1
        self._tags: dict[int, tuple[weakref.ref[Tensor], Tag]] = {}
        self._chosen: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}
        self.sums: list[Sublayer] = []
        self.now = Sublayer()
        self.attention: list[tuple[Tensor, Tensor, Tensor]] = []
        self.hidden_attention = False
        self.query_key: list[Origin | None] = []
        self._set(stream, Tag(STREAM))

    # What is known of tensors

    def _get(self, tensor: Tensor) -> Tag | None:
        entry = self._tags.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def _set(self, tensor: Tensor, tag: Tag) -> None:
        self._tags[id(tensor)] = weakref.ref(tensor), tag

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        given = [*tensors(args), *tensors(kwargs)]
        known = [(x, tag) for x in given if (tag := self._get(x)) is not None]
        if not known:
            return func(*args, **kwargs)
        if name in OF_THE_FIRST and known[0][0] is not given[0]:
            # `bias.expand_as(x)`, or the matrices of the experts that a router chose: no value of x
            out = func(*args, **kwargs)
            if isinstance(out, Tensor) and (matrix := self._matrix(given[0])) is not None:
                self._chosen[id(out)] = weakref.ref(out), matrix
            return out
        if name in FILLED:
            return func(*args, **kwargs)
        is_sum = name in ADDS and self._sums(given, known)
        if is_sum:
            self._note_sum(known)
        is_attention = name == "scaled_dot_product_attention"
        if is_attention:
            self._note_fused(*args, **kwargs)
        elif name == "multi_head_attention_forward":
            self.now.has_attention = self.hidden_attention = True
        out = func(*args, **kwargs)
        if name in SOFTMAX and isinstance(out, Tensor):
            self._note_softmax(*known[0], out)
        if is_sum:
            self._end_sum(out)
            return out
        self._pass_on(name, given, known, out)
        return out

    def _pass_on(
        self, name: str, given: list[Tensor], known: list[tuple[Tensor, Tag]], out: Any
    ) -> None:
        """Tag the results of an operation, and what it writes to."""
        by_matrix = multiplies(name) or "attention" in name
        kind = BRANCH if by_matrix or any(tag.kind == BRANCH for _, tag in known) else STREAM
        weight = self._weight(given, known) if by_matrix else None
        pair = None
        if by_matrix and weight is not None:
            self._note_read(known)
            self.now.last = weight
        elif by_matrix and self.learns and len(known) > 1:
            (a, of_a), (b, of_b) = known[-2:]
            pair = (_resolved(of_a, a), _resolved(of_b, b))
        elif self.learns:
            pair = next((tag.pair for _, tag in known if tag.pair is not None), None)
        for result in tensors(out):
            origin = None
            if self.learns and weight is not None and result.ndim:
                is_linear = "linear" in name
                if weight.ndim == 2 and weight.shape[0 if is_linear else 1] == result.shape[-1]:
                    origin = Origin(weight, 0 if is_linear else 1, result)
            elif self.learns and not by_matrix:
                origin = _merged(known, result)
            self._set(result, Tag(kind, origin, pair))
        if name == "__setitem__" or (name.endswith("_") and not name.endswith("__")):
            self._set(given[0], Tag(kind))

    def _weight(self, given: list[Tensor], known: list[tuple[Tensor, Tag]]) -> Tensor | None:
        """The parameter of a product by a matrix, or the tensor in its place; None for a product of two
        tensors of the block."""
        tracked = {id(x) for x, _ in known}
        others = [x for x in given if id(x) not in tracked and x.ndim >= 2]
        for other in others:
            if (matrix := self._matrix(other)) is not None:
                return matrix
        return others[-1] if others and len(known) == 1 else None

    def _matrix(self, tensor: Tensor) -> Tensor | None:
        """The parameter that a tensor is, is a view of, or was looked up in."""
        base = tensor if tensor._base is None else tensor._base
        if isinstance(base, nn.Parameter):
            return base
        entry = self._chosen.get(id(base))
        return entry[1] if entry is not None and entry[0]() is base else None

    # Residual sums

    def _sums(self, given: list[Tensor], known: list[tuple[Tensor, Tag]]) -> bool:
        """Whether an addition is a residual sum: of the stream and of a branch, both of its shape."""
        return (
            len(known) == 2
            and len(given) == 2
            and {tag.kind for _, tag in known} == {STREAM, BRANCH}
            and known[0][0].shape == known[1][0].shape
            and known[0][0].numel() == self.size
            and known[0][0].shape[-1] == self.width
        )

    def _note_read(self, known: list[tuple[Tensor, Tag]]) -> None:
        if self.now.reads is None and self.measures:
            read = next((x for x, tag in known if tag.kind == STREAM), None)
            if read is not None:
                self.now.reads = rms(read)

    @torch.no_grad()
    def _note_sum(self, known: list[tuple[Tensor, Tag]]) -> None:
        if not self.measures:
            return
        by = {tag.kind: x.detach().float() for x, tag in known}
        skip, branch = by[STREAM], by[BRANCH]
        of_skip, of_branch = (
            torch.linalg.vector_norm(x, dim=self.channels) for x in (skip, branch)
        )
        self.now.ratio = torch.linalg.vector_norm(of_branch) / torch.linalg.vector_norm(of_skip)
        sizes = of_skip * of_branch
        cosine = torch.linalg.vecdot(skip, branch, dim=self.channels) / sizes
        self.now.cosine = torch.where(sizes == 0, sizes, cosine).mean()

    def _end_sum(self, out: Tensor) -> None:
        self._set(out, Tag(STREAM))
        if self.measures:
            self.now.total = rms(out)
        self.sums.append(self.now)
        self.now = Sublayer()

    # Attention

    @torch.no_grad()
    def _note_softmax(self, logits: Tensor, tag: Tag, weights: Tensor) -> None:
        is_square = logits.ndim == 4 or (
            logits.ndim == 3
            and logits.shape[1] == logits.shape[2]
            and logits.shape[0] > self.batch
            and logits.shape[0] % self.batch == 0
        )
        if not is_square or tag.kind != BRANCH or weights.shape != logits.shape:
            return
        self.now.has_attention = True
        if self.learns and tag.pair is not None:
            self.query_key += tag.pair
        if self.measures:
            z = logits.detach()
            z = z if z.ndim == 4 else z.unflatten(0, (self.batch, -1))
            self.attention.append(weigh(_sampled(z)))

    @torch.no_grad()
    def _note_fused(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> None:
        del value, dropout_p
        self.now.has_attention = True
        if self.learns:
            tags = [(x, self._get(x)) for x in (query, key)]
            self.query_key += [_resolved(tag, x) if tag else None for x, tag in tags]
        if not self.measures:
            return
        if query.ndim != 4:
            self.hidden_attention = True
            return
        factor = query.shape[-1] ** -0.5 if scale is None else scale
        if key.shape[1] != query.shape[1]:
            if not enable_gqa:
                self.hidden_attention = True
                return
            key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        n, heads = _sample(query.shape[0], query.shape[1], query.shape[2] * key.shape[2])
        every = max(1, query.shape[1] // heads)
        q, k = (x.detach()[:n, ::every].float() for x in (query, key))
        z = (q @ k.mT) * factor
        if attn_mask is not None:
            mask = (
                attn_mask.detach().expand(query.shape[0], -1, -1, -1)
                if attn_mask.ndim == 4
                else attn_mask
            )
            if mask.ndim == 4:
                mask = mask[:n, ::every] if mask.shape[1] > 1 else mask[:n]
            hidden = torch.full((), -torch.inf, device=z.device)
            z = torch.where(mask, z, hidden) if mask.dtype == torch.bool else z + widened(mask)
        if is_causal:
            rows, columns = z.shape[-2:]
            later = torch.ones(rows, columns, dtype=torch.bool, device=z.device).triu(1)
            z = z.masked_fill(later, -torch.inf)
        self.attention.append(weigh(z))

    # What came of the call

    def plan(self, names: dict[int, str]) -> Plan:
        """The block's parameters; `names` has the name of each by its identity."""
        plan = Plan()
        for origin in self.query_key:
            if origin is None or id(origin.weight) not in names:
                plan.query_key = []
                break
            rows = None if origin.channels is None else tuple(sorted(origin.channels))
            part = (names[id(origin.weight)], origin.axis, rows)
            if part not in plan.query_key:
                plan.query_key.append(part)
        lasts = [
            sublayer.last
            for sublayer in self.sums
            if not sublayer.has_attention and sublayer.last is not None
        ]
        if not lasts and len(self.sums) == 1:  # attention and FFN beside each other
            lasts = [self.sums[0].last] if self.sums[0].last is not None else []
        if lasts:
            plan.last_ffn = names.get(id(lasts[-1]))
        return plan


def _resolved(tag: Tag, tensor: Tensor) -> Origin | None:
    if tag.origin is None:
        return None
    return tag.origin.of(tensor) if tag.origin.is_seen_by(tensor) else tag.origin


def _merged(known: list[tuple[Tensor, Tag]], result: Tensor) -> Origin | None:
    """The origin of what an operation without a matrix made from tensors of one matrix."""
    origins = [tag.origin for _, tag in known if tag.origin is not None]
    if not origins:
        return None
    first = origins[0]
    if first.is_seen_by(result):
        return first
    if any(origin.weight is not first.weight for origin in origins):
        return None
    held = [_resolved(tag, x) for x, tag in known if tag.origin is not None]
    if any(origin is None or origin.channels is None for origin in held):
        return Origin(first.weight, first.axis)
    channels = frozenset().union(
        *(origin.channels for origin in held if origin and origin.channels)
    )
    return Origin(first.weight, first.axis, None, channels)


def wide(x: Tensor) -> Tensor:
    """A tensor in float32, or in float64 if it is."""
    return x if x.dtype == torch.float64 else x.float()


@torch.no_grad()
def rms(x: Tensor) -> Tensor:
    """Root mean square of a tensor, in float32 or more; a number."""
    x = wide(x.detach())
    return torch.linalg.vector_norm(x) / x.numel() ** 0.5


def _sample(sequences: int, heads: int, entries: int) -> tuple[int, int]:
    """How many sequences and heads have at most ENTRIES logits, at least one of each."""
    n = max(1, min(sequences, ENTRIES // max(1, heads * entries)))
    return n, heads if heads * entries <= ENTRIES else max(1, ENTRIES // entries)


def _sampled(z: Tensor) -> Tensor:
    n, heads = _sample(z.shape[0], z.shape[1], z.shape[2] * z.shape[3])
    return widened(z[:n, :: max(1, z.shape[1] // heads)])


def widened(z: Tensor) -> Tensor:
    """Logits or a mask in float32 or more, with the lowest number of float16 as minus infinity."""
    if z.dtype == torch.float16:
        return torch.where(z > torch.finfo(z.dtype).min / 2, z.float(), -torch.inf)
    return wide(z)


@torch.no_grad()
def weigh(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Largest absolute logit, entropy as a fraction of its maximum, and weight on the first position.

    Of logits [B, H, T, S] with masks; arXiv:2309.14322, arXiv:2303.06296, arXiv:2309.17453.

    The entropy is over rows that see two positions or more.
    """
    visible = z > -MASKED
    largest = torch.where(visible, z.abs(), 0.0).amax()
    top = z.amax(-1, keepdim=True)
    p = torch.softmax(z, -1)
    below = torch.where(visible, top - z, 0.0)
    entropy = (below * p).sum(-1) - p.amax(-1).log()
    count = visible.sum(-1).expand(entropy.shape)
    several = count > 1
    share = torch.where(several, entropy / count.clamp_min(2).log(), 0.0)
    return largest, share.sum() / several.sum(), p[:, :, 1:, 0].mean()
