"""RunConfig: everything that decides the result of one run, validated, hashable, frozen."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from . import catalog
from .catalog.choices import GATED
from .catalog.families import FAMILIES, Family, places_of
from .catalog.registry import Registry
from .catalog.scheme import Place, Slots
from .limits import RANGES, TEXT_DIGITS, over_budget

ENGINE = 2
"""Version of everything that turns a config into numbers, part of the key of every result. A change of any
result raises it: results of another version are not found and not shown."""

CHOICES: dict[str, Registry[Any]] = {
    "family": catalog.FAMILIES,
    "scheme": catalog.PLACEMENTS,
    "norm": catalog.NORMS,
    "init": catalog.INITS,
    "qk_norm": catalog.QK_NORMS,
    "v_norm": catalog.V_NORMS,
    "activation": catalog.ACTIVATIONS,
    "task": catalog.TASKS,
    "optimizer": catalog.OPTIMIZERS,
    "schedule": catalog.SCHEDULES,
    "device": catalog.DEVICES,
    "positions": catalog.POSITIONS,
    "mask": catalog.MASKS,
    "sinks": catalog.SINKS,
    "tied": catalog.TIED,
    "decay_on": catalog.DECAYS,
    "parametrisation": catalog.PARAMETRISATIONS,
    "rounding": catalog.ROUNDINGS,
    "patch_norm": catalog.PATCH_NORMS,
}

LATER = (
    "text",
    "positions",
    "mask",
    "sinks",
    "tied",
    "softcap",
    "zloss",
    "decay_on",
    "parametrisation",
    "rounding",
    "branch_gain",
    "weight_gain",
    "family",
    "patch_norm",
)
"""Settings that came later. Written configs, and so the keys of results, name one only where it has not its
default, which trains as before the setting existed."""
BASE_WIDTH, BASE_DEPTH = 32, 2
"""The width at which muP trains as the standard parametrisation does, except for attention's divisor, and the
depth at which CompleteP trains as muP."""


class ConfigError(ValueError):
    """One sentence: which field, what was given, what is allowed. `field` is None for the whole."""

    def __init__(self, sentence: str, field: str | None = None, given: object = None) -> None:
        super().__init__(sentence)
        self.field = field
        self.given = given


class RunConfig(BaseModel):
    """One training run. Defaults are the hero: Pre-LN, 12 blocks of width 32 on the Markov chain.

    Raises ConfigError (a ValueError) with one sentence for the first bad value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    scheme: str = Field("pre", title="placement")
    norm: str = Field("layernorm", title="norm")
    init: str = Field("xavier", title="initialisation")
    qk_norm: str = Field("off", title="QK-norm")
    v_norm: str = Field("off", title="V-norm")
    depth: int = Field(12, title="depth", description="number of blocks L")
    width: int = Field(32, title="width", description="channels of the residual stream d")
    heads: int = Field(4, title="heads", description="attention heads; they divide the width")
    ffn_ratio: int = Field(4, title="FFN ratio", description="FFN width over stream width")
    activation: str = Field("relu", title="activation")
    task: str = Field("markov", title="task")
    text: str = Field("", title="text", description="hash of the text that the task text reads")
    seq_len: int = Field(32, title="sequence length", description="tokens a sequence")
    batch: int = Field(8, title="batch", description="sequences a step")
    steps: int = Field(200, title="steps", description="0 measures at initialisation and stops")
    optimizer: str = Field("adamw", title="optimizer")
    lr: float = Field(3e-3, title="learning rate", description="peak, after warm-up")
    beta1: float = Field(0.9, title="beta1", description="AdamW: decay of the mean gradient")
    beta2: float = Field(0.999, title="beta2", description="AdamW: decay of the squared gradient")
    momentum: float = Field(0.0, title="momentum", description="SGD alone")
    weight_decay: float = Field(
        0.0, title="weight decay", description="decoupled in AdamW and Muon, in the gradient of SGD"
    )
    warmup: int = Field(0, title="warm-up", description="steps of linear rise of the rate")
    schedule: str = Field("constant", title="schedule")
    clip: float | None = Field(
        None, title="clip", description="largest global gradient norm, or off"
    )
    dropout: float = Field(0.0, title="dropout", description="on each branch output and embedding")
    init_seed: int = Field(0, title="init seed")
    data_seed: int = Field(0, title="data seed")
    device: str = Field("auto", title="device")
    lr_edits: tuple[tuple[int, float], ...] = Field(
        (), title="learning-rate changes", description="(step, new peak rate), made while it ran"
    )
    positions: str = Field("learned", title="positions")
    mask: str = Field("causal", title="attention mask")
    sinks: str = Field("off", title="attention sinks")
    tied: str = Field("off", title="tied head")
    softcap: float | None = Field(
        None, title="logit soft-cap", description="c in c tanh(z / c) of each logit z, or off"
    )
    zloss: float = Field(
        0.0, title="z-loss",
        description="weight of (log Z)^2 in what is minimised; the loss shown is without it",
    )  # fmt: skip
    decay_on: str = Field("all", title="decay on")
    parametrisation: str = Field("standard", title="parametrisation")
    rounding: str = Field("off", title="rounding of the stream")
    branch_gain: float = Field(
        1.0, title="branch gain",
        description="multiplies the output of every branch, on top of the placement's own factor",
    )  # fmt: skip
    weight_gain: float = Field(
        1.0, title="weight gain",
        description="multiplies the initial matrices of all blocks, on top of the placement's own factor",
    )  # fmt: skip
    family: str = Field("decoder", title="family")
    patch_norm: str = Field("off", title="norm on the patches")

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**{**_usual(values.get("family")), **values})
        except ValidationError as error:
            raise _first_sentence(error) from None

    @field_validator("qk_norm", "v_norm", "sinks", "tied", mode="before")
    @classmethod
    def _switch(cls, value: object) -> object:
        """What is on or off also reads as a yes or no."""
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value

    @field_validator("text", mode="before")
    @classmethod
    def _no_text(cls, value: object) -> object:
        return "" if value == "none" else value

    @field_validator(*RANGES, "lr_edits", mode="before")
    @classmethod
    def _no_yes_or_no(cls, value: object) -> object:
        if isinstance(value, bool) or (isinstance(value, tuple | list) and _holds_bool(value)):
            raise ValueError("not a number")
        return value

    @field_validator("clip", "softcap", mode="before")
    @classmethod
    def _off(cls, value: object) -> object:
        return None if value in ("off", "none", "") else value

    @field_validator("*")
    @classmethod
    def _in_range(cls, value: Any, info: Any) -> Any:
        name = info.field_name
        if name in CHOICES and value not in CHOICES[name]:
            raise ValueError("not a choice")
        if name in RANGES and value is not None and value not in RANGES[name]:
            raise ValueError("out of range")
        if name == "lr_edits" and value and any(s < 1 or lr not in RANGES["lr"] for s, lr in value):
            raise ValueError("not edits")
        if name == "text" and value and not re.fullmatch(f"[0-9a-f]{{{TEXT_DIGITS}}}", value):
            raise ValueError("not a hash")
        return value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0

    @model_validator(mode="after")
    def _together(self) -> RunConfig:
        if sentence := _of_family(self):
            raise ConfigErrorTogether(sentence)
        if "heads" not in FAMILIES[self.family].lacks and self.width % self.heads:
            raise ConfigErrorTogether(
                f"width is {self.width} and heads is {self.heads}, but the heads must divide the "
                "width",
            )
        if self.task == "text" and not self.text:
            raise ConfigErrorTogether(
                "task is text, but no text is named: paste one on the page, or give --text FILE, or "
                "add one with normviz.model.texts.add and name its hash as text"
            )
        if self.task != "text" and self.text:
            raise ConfigErrorTogether(
                f"text is {self.text!r}, but task is {self.task}, and only the task text reads one"
            )
        if self.task == "copy" and self.seq_len % 2:
            raise ConfigErrorTogether(
                f"seq_len is {self.seq_len}, but the copy task needs an even sequence length"
            )
        if self.task == "hops" and self.seq_len < 4:
            raise ConfigErrorTogether(
                f"seq_len is {self.seq_len}, but pointer chasing needs sequences of 4 or more"
            )
        if [s for s, _ in self.lr_edits] != sorted({s for s, _ in self.lr_edits}):
            raise ConfigErrorTogether("lr_edits must name each step once, in ascending order")
        if self.lr_edits and self.lr_edits[-1][0] >= self.steps:
            raise ConfigErrorTogether(
                f"lr_edits names step {self.lr_edits[-1][0]}, but the last of {self.steps} steps is "
                f"{self.steps - 1}"
            )
        if sentence := _not_together(self) or over_budget(self):
            raise ConfigErrorTogether(sentence)
        return self

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Configs that were possible before a setting came are written, and named, as ever."""
        fields = type(self).model_fields
        return {k: v for k, v in dump(self).items() if k not in LATER or v != fields[k].default}

    @property
    def hidden(self) -> int:
        """Channels of the FFN's hidden layer: two thirds of ffn_ratio times width where the activation has
        two matrices, to the nearest multiple of 4, so that the FFN has about as many parameters."""
        whole = self.ffn_ratio * self.width
        return 4 * max(1, round(whole / 6)) if self.activation in GATED else whole

    @property
    def rows(self) -> int:
        """How many rows its layers have after the first: blocks, or time steps of a recurrent net."""
        return self.seq_len if FAMILIES[self.family].is_recurrent else self.depth

    @property
    def times_base_width(self) -> float:
        """m of muP: width over its base of 32; 1 in the standard parametrisation."""
        return 1.0 if self.parametrisation == "standard" else self.width / BASE_WIDTH

    @property
    def times_base_depth(self) -> float:
        """m of CompleteP: depth over its base of 2; 1 in other parametrisations."""
        return self.depth / BASE_DEPTH if self.parametrisation == "completep" else 1.0

    @property
    def base(self) -> RunConfig:
        """This config with the sizes that decide the initial values: in muP the base width, in CompleteP the
        base depth too, in the standard parametrisation its own."""
        if self.parametrisation == "standard":
            return self
        depth = BASE_DEPTH if self.parametrisation == "completep" else self.depth
        return self.model_copy(update={"width": BASE_WIDTH, "depth": depth})

    @property
    def last_norm(self) -> str:
        """The norm before the output head, where the placement has one."""
        return catalog.NORMS[self.norm].last or self.norm

    @property
    def logit_scale(self) -> float:
        """The factor of the logits: 1 over m of muP, and 1 / sqrt(width) where the head is the token
        embedding and that starts with variance 1 (arXiv:2204.02311)."""
        is_small = self.init in ("gpt2", "gpt2_width")
        tied = 1.0 if self.tied == "off" or is_small else self.width**-0.5
        return tied / self.times_base_width

    def divided(self, slots: Slots) -> Slots:
        """Slots of the placement whose branch gain is multiplied by ours, and divided as CompleteP asks."""
        m = self.times_base_depth / self.branch_gain
        return slots if m == 1.0 else replace(slots, branch_gain=replace(slots.branch_gain, over=m))

    def replace(self, /, **changes: Any) -> RunConfig:
        """The same config with some fields changed, validated like a new one. Another family brings its usual
        settings in place of those that only one of the two has."""
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        if (key := changes.get("family", self.family)) != self.family and key in FAMILIES:
            one, other = FAMILIES[self.family], FAMILIES[key]
            named = {*one.usual, *other.usual, *one.lacks, *other.lacks, "patch_norm"}
            unlike = {
                name
                for name in named
                if one.usual.get(name) != other.usual.get(name)
                or (name in one.lacks) != (name in other.lacks)
                or name == "patch_norm"
            }
            unlike |= {"task"} if self.task not in other.tasks else set()
            unlike |= {"scheme"} if places_of(self.family) != places_of(key) else set()
            kept = {name: value for name, value in kept.items() if name not in unlike}
        return RunConfig(**{**kept, **changes})

    def placed(self) -> RunConfig:
        """This config with the norm that its placement holds: its own if it has one."""
        if self.scheme not in catalog.SCHEMES:
            return self
        own = catalog.SCHEMES[self.scheme].norm
        return self.replace(norm=own) if own else self

    def canonical(self) -> str:
        """Canonical JSON: every field (those in `LATER` where not at their default), sorted, no spaces."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @property
    def key(self) -> str:
        """Name of this config's result: engine version and content hash, as "e2-0123456789abcdef"."""
        return f"e{ENGINE}-{hashlib.sha256(self.canonical().encode()).hexdigest()[:16]}"


class ConfigErrorTogether(ValueError):
    """Inside validation: a sentence about several fields, passed on as it is."""


def allowed(name: str) -> str:
    """What a field may be, as an error sentence ends."""
    if name in CHOICES:
        return f"one of {', '.join(CHOICES[name].keys())}"
    if name in ("clip", "softcap"):
        return f"off, or {RANGES[name].text()}"
    if name == "lr_edits":
        return f"pairs of a step from 1 and a learning rate, {RANGES['lr'].text()}"
    if name == "text":
        return f"none, or the hash of a text: {TEXT_DIGITS} digits of 0-9 and a-f"
    return RANGES[name].text()


def _usual(family: object) -> dict[str, object]:
    """The settings of a family that differ from those of the decoder."""
    return dict(FAMILIES[family].usual) if isinstance(family, str) and family in FAMILIES else {}


def _of_family(config: RunConfig) -> str | None:
    """A sentence about a setting that the family does not have, or None."""
    c, family = config, FAMILIES[config.family]
    given = f"family is {c.family}"
    if c.task not in family.tasks:
        return (
            f"{given} and task is {c.task}, but it learns {_either(family.tasks)}: choose one of them, or "
            f"family={_either(one.key for one in FAMILIES if c.task in one.tasks)}"
        )
    for name, why in family.lacks.items():
        usual = family.usual.get(name, RunConfig.model_fields[name].default)
        if (value := getattr(c, name)) != usual:
            kept = "" if usual == "" else f": leave {name} at {usual}"
            return f"{given} and {name} is {value}, but {why}{kept}"
    if c.patch_norm != "off" and c.family != "vit":
        return f"{given} and patch_norm is {c.patch_norm}, but only a vit reads patches: choose family=vit"
    if c.family == "vit":
        if c.mask != "none":
            return f"{given} and mask is {c.mask}, but its class token reads all patches: choose mask=none"
        if c.seq_len not in (4, 16, 64):
            return (
                f"{given} and seq_len is {c.seq_len}, but an image of 8 x 8 pixels has 4, 16 or 64 square "
                "patches: choose one of these"
            )
    return _norm_of_family(c) or (
        _of_cells(c, given) if family.is_recurrent else _of_stack(c, family, given)
    )


def _norm_of_family(c: RunConfig) -> str | None:
    """A sentence about a norm that the family can't train with."""
    over_batch = c.norm in ("batchnorm", "powernorm")
    if over_batch and FAMILIES[c.family].is_recurrent:
        return (
            f"family is {c.family} and norm is {c.norm}, but its statistics would differ between time steps: "
            "choose a norm of each position, such as layernorm"
        )
    if c.norm in ("gatednorm", "tapernorm") and c.family != "decoder":
        return (
            f"family is {c.family} and norm is {c.norm}, but that norm is written here for decoders alone: "
            "choose another norm"
        )
    if over_batch and c.family == "mlp" and c.task == "digits" and c.batch == 1:
        return (
            f"norm is {c.norm} and batch is 1, but one image has no variance over a batch: choose a batch "
            "of 2 or more, or layernorm"
        )
    return None


def _of_cells(c: RunConfig, given: str) -> str | None:
    """A sentence about a setting that a recurrent net does not have."""
    if c.scheme not in catalog.CELLS:
        return (
            f"{given} and scheme is {c.scheme}, but that is a place around a residual branch: choose "
            f"{_either(catalog.CELLS.keys())}"
        )
    if c.optimizer == "muon":
        return f"{given} and optimizer is muon, which is written for residual stacks: choose adamw or sgd"
    if c.task == "digits" and 64 % c.seq_len:
        return (
            f"{given} and seq_len is {c.seq_len}, but the 64 pixels of an image are read in equal parts: "
            "choose 2, 4, 8, 16, 32 or 64"
        )
    return None


def _of_stack(c: RunConfig, family: Family, given: str) -> str | None:
    """A sentence about a placement that a residual stack does not have."""
    if c.scheme not in catalog.SCHEMES:
        return (
            f"{given} and scheme is {c.scheme}, but that is a place in a recurrent net: choose family=rnn or "
            "lstm, or another scheme"
        )
    scheme, where = catalog.SCHEMES[c.scheme], f"{given} and scheme is {c.scheme}"
    if c.family != "decoder" and scheme.constraint != "none":
        return f"{where}, whose rule for the weights is defined for tokens: choose another scheme"
    if c.family != "decoder" and scheme.streams != "one":
        return f"{where}, but a {c.family} has placements of one stream here: choose another scheme"
    if family.first == "attention":
        return None
    if scheme.slots(Place(1, c.depth, "attention")).is_about_attention:
        return f"{where}, which is about attention, and it has none: choose another scheme"
    return None


def _either(words: Iterable[str]) -> str:
    """ "a, b or c"."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _not_together(config: RunConfig) -> str | None:
    """A sentence about settings that exclude each other, or None."""
    c, head = config, config.width // config.heads
    if c.positions == "rope" and head % 2:
        return (
            f"positions is rope and each of {c.heads} heads has {head} channels, but RoPE rotates pairs of "
            "channels: choose a width and heads that give an even number"
        )
    if c.family == "decoder" and c.mask == "none" and not catalog.TASKS[c.task].targets_hidden:
        others = " or ".join(f"task={task.key}" for task in catalog.TASKS if task.targets_hidden)
        return (
            f"mask is none and task is {c.task}, but without a mask each position sees the token that it has "
            f"to predict: choose mask=causal, or {others}"
        )
    return _not_with_scheme(c) if c.scheme in catalog.SCHEMES else None


def _not_with_scheme(c: RunConfig) -> str | None:
    """A sentence about a setting that the placement excludes, or None."""
    scheme = catalog.SCHEMES[c.scheme]
    if c.rounding != "off" and scheme.streams != "one":
        return (
            f"rounding is {c.rounding} and scheme is {c.scheme}, but rounding is defined for placements with "
            "one stream: choose another scheme or rounding=off"
        )
    slots = scheme.slots(Place(1, c.depth, "attention"))
    if c.branch_gain != 1.0 and (scheme.streams != "one" or slots.mix != "sum"):
        return (
            f"branch_gain is {c.branch_gain:g} and scheme is {c.scheme}, but it is defined where a branch is "
            "added to one stream: choose another scheme or branch_gain=1"
        )
    is_bound = scheme.constraint != "none" or slots.spectral
    if c.weight_gain != 1.0 and is_bound:
        return (
            f"weight_gain is {c.weight_gain:g} and scheme is {c.scheme}, but its weights have a length of "
            "their own: choose another scheme or weight_gain=1"
        )
    if c.parametrisation == "standard":
        return None
    given = f"parametrisation is {c.parametrisation}"
    if matrices := catalog.NORMS[c.norm].drawn:
        return (
            f"{given} and norm is {c.norm}, but it has no rates for the {len(matrices)} matrices inside of "
            "that norm: choose another norm or parametrisation=standard"
        )
    if c.optimizer != "adamw":
        return (
            f"{given} and optimizer is {c.optimizer}, but its rates are those of Adam: choose "
            "optimizer=adamw or parametrisation=standard"
        )
    if c.parametrisation == c.scheme == "completep":
        return (
            "parametrisation is completep and scheme is completep, and both divide each branch by the depth: "
            "choose scheme=pre or parametrisation=standard"
        )
    if scheme.streams != "one" or slots.mix != "sum" or is_bound:
        return (
            f"{given} and scheme is {c.scheme}, but it is defined where a branch is added to one stream "
            "and weights are free: choose another scheme or parametrisation=standard"
        )
    return None


def _first_sentence(error: ValidationError) -> ConfigError:
    """Pydantic's first complaint as one sentence of ours."""
    first = error.errors()[0]
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, ConfigErrorTogether):
        return ConfigError(str(inner))
    name = str(first["loc"][0])
    given = first["input"]
    if name not in RunConfig.model_fields:
        fields = ", ".join(RunConfig.model_fields)
        return ConfigError(
            f"unknown setting {_short(name)}: known settings are {fields}", name, given
        )
    shown = _short(given)
    sentence = f"{name} is {shown}, allowed is {allowed(name)}"
    if name in CHOICES and isinstance(given, str):
        _, _, hint = CHOICES[name].unknown(given).partition(" Did you mean ")
        sentence += f". Did you mean {hint}" if hint else ""
    return ConfigError(sentence, name, given)


def _holds_bool(values: Sequence[object]) -> bool:
    """Whether pairs contain a yes or no; anything nested deeper is refused anyway."""
    pairs = (x if isinstance(x, tuple | list) else (x,) for x in values)
    return any(isinstance(x, bool) for pair in pairs for x in pair)


def _short(given: object) -> str:
    """What was given, at most 60 characters of it."""
    try:
        shown = repr(given)
    except ValueError:  # Python does not print a whole number of thousands of digits
        return "a number of thousands of digits..."
    except RecursionError:
        return "brackets in hundreds of brackets..."
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
