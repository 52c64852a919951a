"""A model's weights on disk: the gains of its norms, and its stream on a text.

Only safetensors are read, from the disk alone and without code of the model's own. Gains are read tensor by
tensor, so they need no memory for the model; a text needs all of it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import torch
from torch import Tensor, nn

from ..catalog import PROBES
from ..formats import megabytes, number, ratio
from ..observed import Observed
from ..result import Result
from ..runs.lane import Lane
from ..runs.recording import Steps
from . import placement, stack
from .anatomy import of_source
from .instruments import KEYS, Instruments
from .library import is_installed, library
from .report import Anatomy
from .source import MISSING, Source, SourceError, from_config, in_one_line, read_config

TOKENS = 512
"""A text is read up to here, or up to the model's own limit."""
CHARACTERS = 64 * TOKENS
"""Of a text that are made into tokens."""
LARGE, TIMES = 100.0, 1000.0
"""An activation is massive if it is larger than the first and at least so many times the median of its hidden
state (Sun et al. 2024, arXiv:2402.17762, section 2: "at least or around")."""
DEFINED = f"arXiv:2402.17762: larger than {LARGE:g} and at least {TIMES:,.0f} times the median"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
INDEX = "model.safetensors.index.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
SAME = 0.02
"""Relative change of an RMS that is called none."""
BY_NAME = re.compile(r"(norm|(^|[._])ln)[^.]*\.(weight|gamma|scale|g)$", re.IGNORECASE)
"""A norm's gain by the name of its tensor, where there is no configuration."""
SIDE = 3
"""Norms side by side in a table."""


@dataclass(frozen=True)
class Files:
    """Weights on disk: their folder, whether a config.json is beside them and counts, the safetensors files,
    and the first file that is a pickle."""

    folder: Path
    has_config: bool
    shards: tuple[Path, ...]
    pickle: str = ""


def find(named: str) -> Files | None:
    """The weights that a file or folder has; None for what is no such file or folder. Raises SourceError."""
    path = Path(named)
    if path.suffix in PICKLES and os.path.isfile(path):
        raise SourceError(_refused(path.name))
    if path.suffix == ".safetensors":
        if not os.path.isfile(path):
            raise SourceError(f"there is no file {named!r}")
        return Files(path.parent, False, (path,))
    if not os.path.isdir(path):
        return None
    has_config = os.path.isfile(path / "config.json")
    shards = _shards(path, has_config)
    pickles = sorted(each.name for each in path.iterdir() if each.suffix in PICKLES)
    pickle = "" if shards else next(iter(pickles), "")
    if not has_config and not shards:
        if pickle:
            raise SourceError(_refused(pickle))
        return None
    return Files(path, has_config, shards, pickle) if shards or pickle else None


def _refused(name: str) -> str:
    return (
        f"{name} is a pickle, which can run any code while it is read, so it is not read: save it as "
        "safetensors, as save_pretrained does"
    )


def _shards(folder: Path, has_config: bool) -> tuple[Path, ...]:
    """The safetensors of a model, or all of a folder without a configuration. Raises SourceError."""
    index, single = folder / INDEX, folder / "model.safetensors"
    if os.path.isfile(index):
        try:
            names = sorted({*json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise SourceError(f"{INDEX} has no weight_map that can be read") from None
        for name in names:
            if not isinstance(name, str) or Path(name).name != name:
                raise SourceError(f"{INDEX} names {name!r}, which is no file of its folder")
            if not os.path.isfile(folder / name):
                raise SourceError(f"{INDEX} names {name}, which is not in {folder}")
        return tuple(folder / name for name in names)
    if os.path.isfile(single):
        return (single,)
    return () if has_config else tuple(sorted(folder.glob("*.safetensors")))


class Tensors:
    """The tensors of safetensors files, by name; each is read when it is asked for."""

    def __init__(self, shards: Sequence[Path]) -> None:
        self._after = ExitStack()
        self._open: dict[str, Any] = {}
        for path in shards:
            try:
                opened = self._after.enter_context(
                    import_module("safetensors").safe_open(str(path), "pt")
                )
            except Exception as error:  # the library has an error of its own
                raise SourceError(f"{path.name} is no safetensors file: {error}") from None
            self._open |= dict.fromkeys(opened.keys(), opened)

    def __enter__(self) -> Tensors:
        return self

    def __exit__(self, *error: object) -> None:
        self._after.close()

    def __contains__(self, name: str) -> bool:
        return name in self._open

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def shape(self, name: str) -> tuple[int, ...]:
        """Its shape, without reading it."""
        return tuple(self._open[name].get_slice(name).get_shape())

    def __getitem__(self, name: str) -> Tensor:
        return self._open[name].get_tensor(name)


@dataclass(frozen=True)
class Gain:
    """The learned gain of a norm, as it multiplies: 1 + the weight where the norm computes that.

    stack, block   the list of blocks and the number in it, from 1; "" and 0 outside of the blocks
    norm           path in the block, or in the model
    """

    stack: str
    block: int
    norm: str
    mean: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """The mean, and from where to where."""
        return f"{number(self.mean)} ({number(self.low)} to {number(self.high)})"


@dataclass(frozen=True)
class Block:
    """The stream after a block; 0 is what enters the first one. None is what was not recorded.

    rms, branch_ratio, largest, times_median   as the probes stream_rms, branch_ratio, stream_max and
                                               stream_max_ratio
    channel   which one has the largest value, from 0
    massive   the channels with a massive activation (see LARGE and TIMES), each with the ratio of its largest
              value to the median
    """

    block: int
    rms: float | None
    branch_ratio: float | None
    largest: float | None
    times_median: float | None
    channel: int | None
    massive: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Growth:
    """The stream of one stack on a text of so many tokens."""

    stack: str
    tokens: int
    is_cut: bool
    dtype: str
    blocks: tuple[Block, ...]
    lane: Lane = field(repr=False, compare=False)

    @property
    def sentences(self) -> tuple[str, str]:
        """What was measured, in plain words: of the RMS, and of the largest channels."""
        return self._rms_words(), self._channel_words()

    @property
    def sentence(self) -> str:
        """Both sentences."""
        return " ".join(self.sentences)

    def _rms_words(self) -> str:
        first, *rest = self.blocks
        last, sizes = rest[-1], [each.rms for each in self.blocks]
        text = f"{'the first' if self.is_cut else 'your'} {self.tokens:,} tokens"
        bad = next((b for b in self.blocks if b.rms is None or not math.isfinite(b.rms)), None)
        if first.rms is None or last.rms is None or bad is not None:
            return f"On {text} the stream is not finite {_after(bad or first)}."
        known = [size for size in sizes if size is not None]
        ends = f"from {number(first.rms)} to {number(last.rms)} over {len(rest)} blocks on {text}"
        if all(a <= b for a, b in pairwise(known)) and last.rms > (1 + SAME) * first.rms:
            return f"The stream's RMS grows {ends}."
        if all(a >= b for a, b in pairwise(known)) and last.rms < (1 - SAME) * first.rms:
            return f"The stream's RMS falls {ends}."
        top = max(self.blocks, key=lambda block: block.rms or 0.0)
        on_its_way = (
            f", with {number(top.rms or 0.0)} {_after(top)}" if top not in (first, last) else ""
        )
        return f"The stream's RMS goes {ends}{on_its_way}."

    def _channel_words(self) -> str:
        told = [b for b in self.blocks if b.times_median is not None and b.channel is not None]
        if not told:
            return "Its largest values were not recorded."
        massive: dict[int, list[tuple[Block, float]]] = {}
        for block in self.blocks:
            for channel, times in block.massive:
                massive.setdefault(channel, []).append((block, times))
        if not massive:
            top = max(told, key=lambda block: block.times_median or 0.0)
            where = _after(*(block for block in told if block.channel == top.channel))
            return (
                f"No activation is massive ({DEFINED}): the largest is {ratio(top.times_median or 0.0)} the "
                f"median, in channel {top.channel}, which has the largest {where}."
            )
        words = [
            f"channel {channel} {_after(*(block for block, _ in blocks))}, up to "
            f"{ratio(max(times for _, times in blocks))} the median"
            for channel, blocks in [*massive.items()][:SIDE]
        ]
        more = f"; and {len(massive) - SIDE} more" if len(massive) > SIDE else ""
        return f"Massive activations ({DEFINED}): {'; '.join(words)}{more}."


def _after(*blocks: Block) -> str:
    """Where, in words: after blocks 3 to 22."""
    numbers = [block.block for block in blocks]
    if numbers == [0]:
        return "before block 1"
    start = "before block 1 and " if numbers[0] == 0 else ""
    runs: list[list[int]] = []
    for n in numbers[bool(start) :]:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    is_one = len(runs) == 1 and len(runs[0]) == 1
    return f"{start}after block{'s' * (not is_one)} {', '.join(words)}"


@dataclass(frozen=True)
class Weights:
    """A model with its weights: its anatomy (None without a config.json), the gains of its norms, its stream
    on a text (None without one), and what could not be told."""

    anatomy: Anatomy | None
    gains: tuple[Gain, ...]
    growth: Growth | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The anatomy's object, with the rest as its "weights"."""
        values = {} if self.anatomy is None else json.loads(self.anatomy.to_json())
        growth = None
        if self.growth is not None:
            own = {k: v for k, v in vars(self.growth).items() if k not in ("lane", "blocks")}
            growth = own | {"blocks": [asdict(block) for block in self.growth.blocks]}
            growth["sentence"] = self.growth.sentence
        weights = {
            "growth": growth,
            "gains": [asdict(gain) for gain in self.gains],
            "notes": self.notes,
        }
        return json.dumps(values | {"weights": _finite(weights)}, ensure_ascii=False)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a block: the stream after it, and mean, least and largest gain of each norm in it."""
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        for block in self.growth.blocks if self.growth else ():
            path = self.growth.stack if self.growth else ""
            massive = " ".join(str(channel) for channel, _ in block.massive)
            rows[path, block.block] = {**asdict(block), "massive": massive}
        for gain in self.gains:
            row = rows.setdefault((gain.stack, gain.block), {"block": gain.block})
            row |= {f"{gain.norm} {n}": getattr(gain, n) for n in ("mean", "low", "high")}
        return pd.DataFrame([{"stack": path, **row} for (path, _), row in rows.items()])

    def __str__(self) -> str:
        parts = [self.growth.sentence] if self.growth else []
        parts += [str(self.anatomy)] if self.anatomy else []
        parts += ["\n".join(_stream_table(self.growth))] if self.growth else []
        parts += ["\n".join(_gain_tables(self.gains))] if self.gains else []
        parts += ["\n".join(self.notes)] if self.notes else []
        return "\n\n".join(parts)


def _finite(value: Any) -> Any:
    """Numbers that are not finite as None: JSON has none."""
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _stream_table(growth: Growth) -> Iterator[str]:
    yield f"stream after each block of {growth.stack}, {growth.tokens:,} tokens, {growth.dtype}"
    rows = [["block", "RMS", "branch / stream", "largest", "times median", "channel"]]
    for b in growth.blocks:
        cells = (b.rms, b.branch_ratio, b.largest, b.times_median)
        where = "" if b.channel is None else f"{b.channel}{' massive' if b.massive else ''}"
        rows.append([str(b.block), *("" if x is None else number(x) for x in cells), where])
    yield from _aligned(rows)
    yield f"block 0 is what enters {growth.stack}.0; channels count from 0"


def _gain_tables(gains: Sequence[Gain]) -> Iterator[str]:
    """Mean, least and largest gain by block, some norms side by side."""
    for path in dict.fromkeys(gain.stack for gain in gains if gain.block):
        own = [gain for gain in gains if gain.stack == path]
        yield f"gains of norms by block of {path}: mean (least to largest)"
        norms = [*dict.fromkeys(gain.norm for gain in own)]
        for at in range(0, len(norms), SIDE):
            some = norms[at : at + SIDE]
            by = {(gain.block, gain.norm): gain.words for gain in own}
            blocks = sorted({gain.block for gain in own if gain.norm in some})
            yield from _aligned(
                [
                    ("block", *some),
                    *((str(n), *(by.get((n, norm), "") for norm in some)) for n in blocks),
                ]
            )
        yield f"block 1 is {path}.0"
    for gain in gains:
        if not gain.block:
            yield f"{gain.norm}, outside of the blocks: {gain.words}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


# Reading


def read(
    files: Files,
    text: Path | None = None,
    tokens: str = "",
    dtype: str = "float32",
    blocks: str | None = None,
) -> Weights:
    """What weights on disk tell. With a `text`, or `tokens` (numbers with spaces or commas), the model runs
    on it, on the CPU. Raises ValueError with a sentence."""
    asks = text is not None or bool(tokens)
    if text is not None and tokens:
        raise SourceError("--text and --tokens were given: one of them is enough")
    if dtype not in DTYPES:
        raise SourceError(f"--dtype is {dtype!r}, allowed is {' or '.join(DTYPES)}")
    if not is_installed():
        raise SourceError(MISSING)
    if not files.has_config:
        return _without_config(files, asks)
    if files.pickle and asks:
        raise SourceError(_refused(files.pickle))
    values = read_config(files.folder / "config.json")
    remote = "config.json names code of its own (auto_map), which was not run"
    try:
        source = from_config(values)
    except SourceError as error:
        raise SourceError(f"{error}; {remote}" if "auto_map" in values else str(error)) from None
    anatomy, traced = of_source(source, blocks)
    notes = [f"{remote}: read as {source.name} of transformers"] * ("auto_map" in values)
    notes += [_refused(files.pickle)] * bool(files.pickle)
    growth = None
    with Tensors(files.shards) as there:
        gains, missing = _gains(source.model, traced, there)
        if missing and not files.pickle:
            more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
            notes.append(f"gains that are not in the files: {missing[0]}{more}")
        if asks:
            _check_values(values, source, there, DTYPES[dtype], dtype)
    if asks:
        ids, is_cut = _tokens(files.folder, source.model, text, tokens)
        growth = _growth(files.folder, source, traced, anatomy, ids, is_cut, dtype)
    return Weights(anatomy, gains, growth, tuple(notes))


def _without_config(files: Files, asks: bool) -> Weights:
    """The gains by the names of tensors alone. Raises SourceError."""
    names = ", ".join(path.name for path in files.shards[:2])
    if asks:
        beside = os.path.isfile(files.folder / "config.json")
        how = f"give its folder {files.folder}" if beside else "put it beside the weights"
        raise SourceError(f"without a config.json a text can't be run on {names}: {how}")
    with Tensors(files.shards) as there:
        gains = tuple(
            _gain(*_place(name), there[name])
            for name in sorted(there, key=_natural)
            if BY_NAME.search(name) and len(there.shape(name)) == 1
        )
    note = (
        "Without config.json norms are told by the names of their tensors alone, their numbers are as they "
        "are stored, no placement is told, and no text can be run."
    )
    return Weights(None, gains, None, (note,) if gains else (f"No name is of a norm. {note}",))


def _natural(name: str) -> list[tuple[bool, int, str]]:
    return [(x.isdecimal(), int(x) if x.isdecimal() else 0, x) for x in name.split(".")]


def _place(name: str) -> tuple[str, int, str]:
    """Stack, number of the block, and norm in it, by the first number in a tensor's name."""
    parts = name.split(".")
    at = next((i for i, part in enumerate(parts[:-2]) if part.isdecimal()), None)
    if at is None:
        return "", 0, ".".join(parts[:-1])
    return ".".join(parts[:at]), int(parts[at]) + 1, ".".join(parts[at + 1 : -1])


def _gain(path: str, block: int, norm: str, weight: Tensor, offset: float = 0.0) -> Gain:
    gain = weight.double() + offset
    return Gain(path, block, norm, float(gain.mean()), float(gain.min()), float(gain.max()))


def _gains(
    model: nn.Module, traced: placement.Trace, there: Tensors
) -> tuple[tuple[Gain, ...], list[str]]:
    """The gains of the norms of a trace, and the names of those that the files have not."""
    gains: list[Gain] = []
    missing: list[str] = []
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    for path in (name for name, _ in model.named_modules() if name in traced.norms):
        norm = traced.norms[path]
        if norm.scale is None:
            continue
        name = f"{path}.{norm.scale}"
        stored = next((n for n in _names(name, prefix) if n in there), None)
        if stored is None:
            missing.append(name)
            continue
        where = next(
            (
                (each.stack.path, n + 1, path.removeprefix(each.stack.inside(n)))
                for each in traced.stacks
                for n in range(len(each.stack.blocks))
                if path.startswith(each.stack.inside(n))
            ),
            ("", 0, path),
        )
        gains.append(_gain(*where, there[stored], 1.0 if norm.gain.startswith("1 +") else 0.0))
    return tuple(gains), missing


def _names(name: str, prefix: str) -> list[str]:
    """The names that a parameter may have in a file: with and without the head's prefix, and as TensorFlow
    called it."""
    every = [name, name.removeprefix(prefix), prefix + name]
    return [*every, *(re.sub(r"\.weight$", ".gamma", each) for each in every)]


def _check_values(
    values: Mapping[str, Any], source: Source, there: Tensors, dtype: torch.dtype, name: str
) -> None:
    """Whether a text can be run at all. Raises SourceError."""
    if values.get("quantization_config"):
        raise SourceError(
            "the weights are quantised (quantization_config), and NormViz runs a text on plain ones: give "
            "those; without a text the gains are read"
        )
    if getattr(source.model.config, "is_encoder_decoder", False):
        raise SourceError(
            f"{source.name} is an encoder with a decoder, and a text is run through one stack alone; without "
            "a text the gains are read"
        )
    need = sum(math.prod(there.shape(each)) for each in there) * dtype.itemsize
    free = psutil.virtual_memory().available
    if need > free:
        half = f", or give --dtype bfloat16 ({_size(need // 2)})" if name == "float32" else ""
        raise SourceError(
            f"the weights take {_size(need)} in {name}, and {_size(free)} of memory are free: make "
            f"room{half}; without a text the gains are read"
        )


def _size(count: int) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else megabytes(count)


def _tokens(
    folder: Path, model: nn.Module, text: Path | None, given: str
) -> tuple[list[int], bool]:
    """The tokens that are run, and whether the text has more. Raises SourceError."""
    config: Any = model.config
    inner = config.get_text_config()
    most = min(TOKENS, getattr(inner, "max_position_embeddings", None) or TOKENS)
    if text is None:
        words = given.replace(",", " ").split()
        if not words or not all(word.isdecimal() for word in words):
            raise SourceError("--tokens takes the numbers of tokens, such as --tokens '1 15 27'")
        every = [int(word) for word in words]
    else:
        every = _encoded(folder, _characters(text))
        if not every:
            raise SourceError(f"{text} has no tokens")
    size = getattr(inner, "vocab_size", None)
    if size and max(every) >= size:
        raise SourceError(
            f"token {max(every)} is not in the model's vocabulary, which has {size:,}: 0 to {size - 1}"
        )
    return every[:most], len(every) > most


def _characters(text: Path) -> str:
    try:
        with text.open(encoding="utf-8") as file:
            return file.read(CHARACTERS)
    except OSError as error:
        raise SourceError(f"{str(text)!r} can't be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SourceError(f"{str(text)!r} is no text in UTF-8") from None


def _encoded(folder: Path, words: str) -> list[int]:
    """The tokens of a text by the tokenizer of a folder. Raises SourceError."""
    if not any(os.path.isfile(folder / name) for name in TOKENIZERS):
        raise SourceError(
            f"no tokenizer is in {folder}: give numbers of tokens, such as --tokens '1 15 27', in place of "
            "--text"
        )
    try:
        tokenizer = library().AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
        return tokenizer(words)["input_ids"]
    except Exception as error:  # whatever a stranger's files cause
        raise SourceError(
            f"the tokenizer in {folder} can't be used: {in_one_line(error)}; give numbers of tokens with "
            "--tokens in place of --text"
        ) from error


# The text


class Reader(Instruments):
    """The instruments of a watch on one forward pass, with the largest value of each channel."""

    peaks: dict[int, Tensor]

    @torch.no_grad()
    def _measure_stream(self, layer: int, x: Tensor) -> None:
        super()._measure_stream(layer, x)
        self.peaks[layer] = x.detach().float().abs().flatten(0, -2).amax(0)


def _growth(
    folder: Path,
    source: Source,
    traced: placement.Trace,
    anatomy: Anatomy,
    ids: list[int],
    is_cut: bool,
    dtype: str,
) -> Growth:
    """The stream of the main stack on some tokens. Raises SourceError."""
    each = traced.main
    if each.stack.single or each.stream is None:
        raise SourceError(
            f"no list of blocks with one stream was told in {anatomy.model}: a text is not run; without one "
            "the gains are read"
        )
    model = _loaded(folder, source, each.stack.path, DTYPES[dtype])
    reader = Reader(model, stack.find_stacks(model, each.stack.path)[0])
    reader.stream, reader.peaks = each.stream, {}
    reader.arm()
    reader.begin_pass(True)
    try:
        with torch.no_grad():
            model.base_model(input_ids=torch.tensor([ids]))
        row, has_failed = reader.row.numpy().copy(), reader.has_failed
    except Exception as error:  # whatever a stranger's weights cause
        raise SourceError(
            f"{anatomy.model} does not take these tokens: {in_one_line(error)}"
        ) from error
    finally:
        reader.disarm()
    if has_failed or len(reader.peaks) <= reader.depth:
        raise SourceError(
            f"not every block of {each.stack.path} ran on the text; --blocks names another list"
        )
    return Growth(
        each.stack.path,
        len(ids),
        is_cut,
        dtype,
        tuple(_block(layer, row[:, layer], reader.peaks[layer]) for layer in range(row.shape[1])),
        _lane(anatomy, each.stack.path, row),
    )


def _loaded(folder: Path, source: Source, path: str, dtype: torch.dtype) -> Any:
    """The model with its weights. Its class is one of transformers, so no code of the folder is run.

    Raises SourceError.
    """
    made: Any = type(source.model)
    try:
        model, info = made.from_pretrained(
            str(folder), config=source.model.config, dtype=dtype, local_files_only=True,
            use_safetensors=True, output_loading_info=True,
        )  # fmt: skip
    except Exception as error:  # whatever a stranger's files cause
        raise SourceError(
            f"the weights do not fit the config.json: {in_one_line(error)}"
        ) from error
    missing = sorted(name for name in info["missing_keys"] if name.startswith(f"{path}."))
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise SourceError(
            f"the weights lack {missing[0]}{more}, so a text would run on random ones"
        )
    return model.eval()


def _block(layer: int, row: np.ndarray, peaks: Tensor) -> Block:
    """The record of one layer from its row of the probes and the largest value of each channel."""
    values = {key: None if math.isnan(x) else x for key, x in zip(KEYS, row.tolist(), strict=True)}
    largest, times = values["stream_max"], values["stream_max_ratio"]
    massive: list[tuple[int, float]] = []
    if largest and times and math.isfinite(times):
        ratios = (peaks.double() * (times / largest)).tolist()
        massive = [(i, r) for i, r in enumerate(ratios) if peaks[i] > LARGE and r >= TIMES]
    ratio_of = None if layer < PROBES["branch_ratio"].first_layer else values["branch_ratio"]
    channel = int(peaks.argmax()) if bool(peaks.isfinite().all()) else None
    return Block(layer, values["stream_rms"], ratio_of, largest, times, channel, tuple(massive))


def _lane(anatomy: Anatomy, path: str, row: np.ndarray) -> Lane:
    """The measured numbers as a lane of one step, which the charts draw."""
    main = next(each for each in anatomy.stacks if each.path == path)
    settings = Observed(
        model=anatomy.model[:200], blocks=main.blocks, width=main.width or 1, placement=main.placement,
        norm=main.norm_key, parameters=anatomy.parameters, source="normviz inspect", path=path,
    )  # fmt: skip
    nan = np.full(1, math.nan)
    steps = Steps(
        step=np.zeros(1, np.int64), loss=nan, lr=nan, grad_norm=nan,
        layer_steps=np.zeros(1, np.int64), layers=row[None],
    )  # fmt: skip
    return Result(settings, None, "finished", None, probes=KEYS, steps=steps).lane()
