"""What a visitor names as a model: a Hugging Face model type, a config.json, or `file.py:factory`.

A model of Hugging Face is made without weights: its matrices are on the meta device and take no memory.
No code of a model is downloaded or run from a configuration.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
import os
import runpy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .library import is_installed, library, models
from .report import NESTED

TOKENS = 24
"""Length of the text that goes through a model."""
BATCH = 2
SMALL = 1 << 16
"""A tensor with more numbers is on the meta device, where it has no values."""
MISSING = (
    "transformers is not installed here: `pip install normviz[own-model]`, or give your own code as "
    "file.py:factory"
)


class SourceError(ValueError):
    """What was named is no model here; the message is one sentence."""


def offline() -> None:
    """Let this process ask no hub for what a configuration names. Before transformers is imported, and in
    a process of NormViz alone: a visitor's own may load what it likes."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")


def is_code(named: str) -> bool:
    """Whether `file.py:factory` is named: code that the visitor runs."""
    return named.rpartition(":")[0].endswith(".py")


@dataclass(frozen=True)
class Source:
    """A model, the inputs to try on it, in turn, and what it was named."""

    model: nn.Module
    inputs: tuple[Callable[[], Any], ...]
    name: str


def load(named: str, base: bool = False) -> Source:
    """The model of a Hugging Face model type, a config.json, or `file.py:factory`. Raises SourceError.

    `base` leaves the head of a model of Hugging Face out.
    """
    if is_code(named):
        file, _, factory = named.rpartition(":")
        return _from_code(Path(file), factory)
    path = Path(named)
    if named.endswith(".json") or os.path.isfile(path):  # False for a name that no file can have
        return from_config(read_config(path), base)
    if os.path.isfile(path / "config.json"):
        return from_config(read_config(path / "config.json"), base)
    if named.endswith(".py"):
        raise SourceError(
            f"{named!r} needs the name of a function that makes the model: {named}:build"
        )
    if "/" in named and os.path.isdir(path):
        raise SourceError(f"{named!r} has no config.json and no *.safetensors")
    if "/" in named:
        raise SourceError(
            f"{named!r} is a name on a hub, and NormViz uses no network: download its config.json, and "
            "give that file, or a model type such as qwen3"
        )
    return from_config({"model_type": named}, base)


# A factory in a file.


def _from_code(path: Path, factory: str) -> Source:
    """The model that a function of a file makes; it may also return an input, or a table of inputs."""
    if not os.path.isfile(path):
        raise SourceError(f"there is no file {str(path)!r}")
    try:
        names = runpy.run_path(str(path))
    except Exception as error:  # whatever the file raises
        raise SourceError(f"{path} raised {in_one_line(error)}") from error
    make = names.get(factory)
    if not callable(make):
        every = ", ".join(
            n for n, v in names.items() if inspect.isfunction(v) or inspect.isclass(v)
        )
        raise SourceError(f"{path} has no function {factory!r}: it has {every[:200] or 'none'}")
    try:
        made = make()
    except Exception as error:
        raise SourceError(f"{factory}() raised {in_one_line(error)}") from error
    model, given = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, nn.Module):
        raise SourceError(
            f"{factory}() gave a {type(model).__name__}: it must return a torch.nn.Module, or a module and "
            "its input"
        )
    return Source(model, inputs_of(model, given), f"{path.name}:{factory}")


def inputs_of(model: nn.Module, given: Any = None) -> tuple[Callable[[], Any], ...]:
    """Calls of a model on small inputs, to try in turn. `given` is an input, or a table of them by name."""
    if given is not None:
        return (lambda: _called(model, given),)
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "model_type"):
        return tuple(_hugging(model))
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    embedding = next((m for m in model.modules() if isinstance(m, nn.Embedding)), None)
    tries: list[Callable[[], Any]] = []
    for length in (TOKENS, 16, 8, 32, 64, 128, 256, 512, 1024):
        if embedding is not None:
            tokens = torch.zeros(BATCH, length, dtype=torch.long, device=device)
            tries += [lambda t=tokens: model(t), lambda t=tokens: model(t, t)]
    first = next((p for p in model.parameters() if p.ndim >= 2), None)
    if first is not None:
        x = torch.zeros(BATCH, TOKENS, first.shape[1], device=device, dtype=first.dtype)
        tries += [lambda: model(x), lambda: model(x, x)]  # a decoder reads a second stream
        if first.ndim == 4:
            pixels = torch.zeros(BATCH, first.shape[1], 224, 224, device=device, dtype=first.dtype)
            tries.append(lambda: model(pixels))
    return tuple(tries)


def _called(model: nn.Module, given: Any) -> Any:
    if isinstance(given, Mapping):
        return model(**given)
    return model(*given) if isinstance(given, tuple | list) else model(given)


# Models of Hugging Face, from their configurations.


def read_config(path: Path) -> dict[str, Any]:
    """The configuration in a file. Raises SourceError."""
    try:
        return parse_config(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{str(path)!r} can't be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SourceError(f"{str(path)!r} is no text") from None


def parse_config(text: str) -> dict[str, Any]:
    """A configuration from its JSON. Raises SourceError."""
    try:
        config = json.loads(text)
    except RecursionError:
        raise SourceError(NESTED) from None
    except ValueError as error:
        raise SourceError(f"the configuration is no JSON: {error}") from None
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise SourceError('a configuration is a JSON object with a "model_type", such as "qwen3"')
    return config


def from_config(values: Mapping[str, Any], base: bool = False) -> Source:
    """A model of Hugging Face without weights. `auto_map` (code on a hub) is never followed.

    Raises SourceError.
    """
    if not is_installed():
        raise SourceError(MISSING)
    kind = str(values["model_type"])
    given = {k: v for k, v in values.items() if k not in ("auto_map", "quantization_config")}
    config = _config(kind, {k: v for k, v in given.items() if k != "model_type"})
    errors: list[Exception] = []
    for made in dict.fromkeys((_class(kind, config, base), _class(kind, config, True))):
        for values_of in (SmallOnly(), torch.device("meta")):
            try:
                with values_of, torch.random.fork_rng(devices=[]):
                    torch.manual_seed(0)  # so that an anatomy is the same each time
                    model = made(config)
                return Source(model, tuple(_hugging(model)), kind)
            except Exception as error:  # a stranger's numbers can break any constructor
                errors.append(error)
    raise _failed(kind, f"{kind} can't be made from this configuration", errors[0]) from errors[0]


LACKS = {"dbrx": {"attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0}}}
"""What a model needs and the defaults of its configuration lack."""


def _config(kind: str, values: dict[str, Any]) -> Any:
    """The configuration object of a model type."""
    transformers = library()
    try:
        config = transformers.AutoConfig.for_model(kind, **LACKS.get(kind, {}) | values)
    except ValueError:
        near = _near(kind, [*transformers.CONFIG_MAPPING.keys()])
        raise SourceError(
            f"{kind!r} is no model type of transformers {transformers.__version__}: "
            f"{'near are ' + near if near else 'see `normviz list --models` for names'}"
        ) from None
    except Exception as error:
        raise _failed(kind, f"the configuration of {kind} is not valid", error) from error
    config.use_cache = False
    config._attn_implementation = "eager"
    return config


def _failed(kind: str, what: str, error: Exception) -> SourceError:
    """What failed and why, in one sentence."""
    from huggingface_hub.errors import OfflineModeIsEnabled, StrictDataclassError

    if isinstance(error, OfflineModeIsEnabled):
        return SourceError(
            f"the configuration of {kind} names another model on a hub, and NormViz uses no network: write "
            "the configuration of that model in its place, as backbone_config"
        )
    if isinstance(error, StrictDataclassError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # what a check of the configuration said
    return SourceError(f"{what}: {in_one_line(error)}")


def in_one_line(error: Exception) -> str:
    """The class of an error and all that it says, cut to 200 characters."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _near(word: str, names: list[str]) -> str:
    return ", ".join(difflib.get_close_matches(word, names, 3, 0.6))


def _class(kind: str, config: Any, base: bool) -> Any:
    """The class of a model type: that of its list, else the model without a head. Raises SourceError."""
    transformers = library()
    name = None if base else models().get(kind, (None, None))[1]
    if name is not None and (model_class := getattr(transformers, name, None)) is not None:
        return model_class
    try:
        return transformers.AutoModel._model_mapping[type(config)]
    except KeyError:
        raise SourceError(
            f"transformers has no model for {kind!r} without a task of its own"
        ) from None


SIZED = {"empty", "zeros", "ones", "full", "rand", "randn", "normal"}


class SmallOnly(TorchFunctionMode):
    """Tensors with many numbers are made on the meta device, small ones with their values."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        filled = args[0] if args else kwargs.get("tensor")
        if name.endswith("_") and not name.endswith("__") and getattr(filled, "is_meta", False):
            return filled  # filling what has no values
        if name in SIZED and kwargs.get("device") is None:
            count = _count(args, kwargs)
            if count is not None and count > SMALL:
                kwargs["device"] = "meta"
        return func(*args, **kwargs)


def _count(args: tuple, kwargs: dict) -> int | None:
    """How many numbers a new tensor has."""
    size = kwargs.get("size", args[0] if args else None)
    if isinstance(size, int):
        size = [
            length for length in args if isinstance(length, int) and not isinstance(length, bool)
        ]
    try:
        return math.prod(int(length) for length in size) if size is not None else None
    except (TypeError, ValueError):
        return None


def _hugging(model: Any) -> Iterator[Callable[[], Any]]:
    """Calls of a model of Hugging Face on small inputs, to try in turn."""
    names = set(inspect.signature(model.forward).parameters)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    if any(p.is_meta for p in model.parameters()):
        device = torch.device("meta")
    config = model.config
    for length in (TOKENS, 64, 1024):
        given = _inputs(names, config, length)
        yield lambda given=given: model(**{k: v.to(device) for k, v in given.items()})
    dummy = getattr(model, "dummy_inputs", None)
    if isinstance(dummy, dict):
        yield lambda: model(**{k: v.to(device) for k, v in dummy.items() if isinstance(v, Tensor)})


def _inputs(names: set[str], config: Any, length: int) -> dict[str, Tensor]:
    """Inputs of a model by the names of its forward pass."""
    inputs: dict[str, Tensor] = {}
    tokens = torch.full((BATCH, length), 5, dtype=torch.long)
    vision = getattr(config, "vision_config", config)
    if "input_ids" in names:
        inputs["input_ids"] = tokens
    if "decoder_input_ids" in names and getattr(config, "is_encoder_decoder", False):
        inputs["decoder_input_ids"] = tokens
    if "pixel_values" in names:
        size = getattr(vision, "image_size", None) or 224
        size = tuple(size) if isinstance(size, list | tuple) else (size, size)
        inputs["pixel_values"] = torch.zeros(BATCH, getattr(vision, "num_channels", 3) or 3, *size)
    if "input_values" in names:
        inputs["input_values"] = _sound(config)
    if "input_features" in names:
        inputs["input_features"] = _features(config)
        if "decoder_input_ids" in names:
            inputs["decoder_input_ids"] = tokens
    return inputs


def _sound(config: Any) -> Tensor:
    if (bins := getattr(config, "num_mel_bins", None)) and (
        frames := getattr(config, "max_length", 0)
    ):
        return torch.zeros(BATCH, frames, bins)
    return torch.zeros(BATCH, 16000)


def _features(config: Any) -> Tensor:
    bins = getattr(config, "num_mel_bins", None) or getattr(config, "feature_size", None)
    frames = getattr(config, "max_source_positions", 0)
    if bins and "whisper" in str(config.model_type):
        return torch.zeros(BATCH, bins, 2 * (frames or 1500))
    width = bins or getattr(config, "feature_projection_input_dim", None) or 80
    return torch.zeros(BATCH, 256, width)
