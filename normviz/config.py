"""RunConfig: everything that decides the result of one run, validated, hashable, frozen."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from . import catalog
from .catalog.choices import GATED
from .catalog.families import FAMILIES, places_of
from .catalog.patterns import patterns
from .catalog.registry import Registry
from .catalog.scheme import Place, Scheme, Slots
from .catalog.setting import FORMULA, Range, Setting
from .cores import has_gpu
from .limits import (
    MAX_GIB,
    MAX_GPU_GIB,
    MAX_LANES,
    MAX_MINUTES,
    MAX_SYMBOLS,
    QUICK_GIB,
    QUICK_SECONDS,
    TEXT_DIGITS,
)
from .native.library import unavailable

ENGINE = 2
"""Version of everything that turns a config into numbers, part of the key of every result. A change of any
result raises it: results of another version are not found and not shown."""

WRITTEN = (
    "scheme", "norm", "init", "qk_norm", "v_norm", "depth", "width", "heads", "ffn_ratio", "activation",
    "task", "seq_len", "batch", "steps", "optimizer", "lr", "beta1", "beta2", "momentum", "weight_decay",
    "warmup", "schedule", "clip", "dropout", "init_seed", "data_seed", "device", "lr_edits",
)  # fmt: skip
"""The first 28 settings, which written configs, and so the keys of results, name always. This list never
changes: other settings are named where not at their default, which trains as before the setting existed."""
RATE, SHARE, GAIN = Range(0, 10, above=True), Range(0, 1, below=True), Range(0.001, 10)
BOUND, SEED = Range(0, 1e6, above=True), Range(0, 2**31 - 1, whole=True)
BASE_WIDTH, BASE_DEPTH = 32, 2
"""The width at which muP trains as the standard parametrisation does, except for attention's divisor, and the
depth at which CompleteP trains as muP."""


class ConfigError(ValueError):
    """One sentence: which field, what was given, what is allowed. `field` is None if it is about several."""

    def __init__(self, sentence: str, field: str | None = None, given: object = None) -> None:
        super().__init__(sentence)
        self.field = field
        self.given = given


def _is_hash(text: str) -> bool:
    return not text or re.fullmatch(f"[0-9a-f]{{{TEXT_DIGITS}}}", text) is not None


def _are_edits(edits: Sequence[tuple[int, float]]) -> bool:
    return all(step >= 1 and rate in RATE for step, rate in edits)


class RunConfig(BaseModel):
    """One training run. Defaults are the hero: Pre-LN, 12 blocks of width 32 on the Markov chain.

    Raises ConfigError (a ValueError) with one sentence for the first bad value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    # fmt: off
    scheme: Annotated[str, Setting("placement", choices=catalog.PLACEMENTS)] = "pre"
    norm: Annotated[str, Setting("norm", choices=catalog.NORMS)] = "layernorm"
    init: Annotated[str, Setting("initialisation", choices=catalog.INITS)] = "xavier"
    qk_norm: Annotated[str, Setting("QK-norm", choices=catalog.QK_NORMS, group="Attention")] = "off"
    v_norm: Annotated[str, Setting("V-norm", choices=catalog.V_NORMS, group="Attention")] = "off"
    depth: Annotated[int, Setting(
        "depth", "number of blocks L", Range(1, 1000, whole=True), axis="2,4,8,16,32")] = 12
    width: Annotated[int, Setting(
        "width", "channels of the residual stream d", Range(4, 1024, whole=True), group="Model",
        axis="16,32,64")] = 32
    heads: Annotated[int, Setting(
        "heads", "attention heads; they divide the width", Range(1, 64, whole=True), group="Model",
        axis="1,2,4,8")] = 4
    ffn_ratio: Annotated[int, Setting(
        "FFN ratio", "FFN width over stream width", Range(1, 16, whole=True), group="Model",
        axis="1,2,4")] = 4
    activation: Annotated[str, Setting("activation", choices=catalog.ACTIVATIONS, group="Model")] = "relu"
    task: Annotated[str, Setting("task", choices=catalog.TASKS)] = "markov"
    text: Annotated[str, Setting(
        "text", "hash of the text that the task text reads", axis=None, is_form=_is_hash,
        form=f"none, or the hash of a text: {TEXT_DIGITS} digits of 0-9 and a-f")] = ""
    seq_len: Annotated[int, Setting(
        "sequence length", "tokens a sequence", Range(2, 512, whole=True), group="Data", axis="8,16,32")] = 32
    batch: Annotated[int, Setting(
        "batch", "sequences a step", Range(1, 256, whole=True), group="Data", axis="4,8,16,32")] = 8
    steps: Annotated[int, Setting(
        "steps", "0 measures at initialisation and stops", Range(0, 20_000, whole=True),
        axis="100,200,400")] = 200
    optimizer: Annotated[str, Setting(
        "optimizer", choices=catalog.OPTIMIZERS, group="Optimisation", training=True)] = "adamw"
    lr: Annotated[float, Setting(
        "learning rate", "peak, after warm-up", RATE, axis="0.0003,0.001,0.003,0.01,0.03",
        training=True)] = 3e-3
    beta1: Annotated[float, Setting(
        "beta1", "AdamW: decay of the mean gradient", SHARE, group="Optimisation", axis="0,0.5,0.9",
        training=True)] = 0.9
    beta2: Annotated[float, Setting(
        "beta2", "AdamW: decay of the squared gradient", SHARE, group="Optimisation", axis="0.9,0.99,0.999",
        training=True)] = 0.999
    momentum: Annotated[float, Setting(
        "momentum", "SGD alone", SHARE, group="Optimisation", axis="0,0.5,0.9", training=True)] = 0.0
    weight_decay: Annotated[float, Setting(
        "weight decay", "decoupled in AdamW and Muon, in the gradient of SGD", Range(0, 10),
        group="Optimisation", axis="0,0.01,0.1", training=True)] = 0.0
    warmup: Annotated[int, Setting(
        "warm-up", "steps of linear rise of the rate", Range(0, 20_000, whole=True), axis="0,25,50,100",
        training=True)] = 0
    schedule: Annotated[str, Setting(
        "schedule", choices=catalog.SCHEDULES, group="Optimisation", training=True)] = "constant"
    clip: Annotated[float | None, Setting(
        "clip", "largest global gradient norm, or off", BOUND, off=True, group="Optimisation",
        axis="0.1,1,10,off", training=True)] = None
    dropout: Annotated[float, Setting(
        "dropout", "on each branch output and embedding", SHARE, group="Model", axis="0,0.1,0.2")] = 0.0
    init_seed: Annotated[int, Setting("init seed", range=SEED, axis="0,1,2,3")] = 0
    data_seed: Annotated[int, Setting("data seed", range=SEED, group="Data", axis="0,1,2,3")] = 0
    device: Annotated[str, Setting("device", choices=catalog.DEVICES, group="Data")] = "auto"
    lr_edits: Annotated[tuple[tuple[int, float], ...], Setting(
        "learning-rate changes", "(step, new peak rate), made while it ran", axis=None, training=True,
        form=f"pairs of a step from 1 and a learning rate, {RATE.text()}", is_form=_are_edits)] = ()
    positions: Annotated[str, Setting("positions", choices=catalog.POSITIONS, group="Model")] = "learned"
    mask: Annotated[str, Setting(
        "attention mask", choices=catalog.MASKS, group="Attention", axis=None)] = "causal"
    sinks: Annotated[str, Setting(
        "attention sinks", choices=catalog.SINKS, group="Attention", tape=("off",))] = "off"
    tied: Annotated[str, Setting("tied head", choices=catalog.TIED, group="Model")] = "off"
    softcap: Annotated[float | None, Setting(
        "logit soft-cap", "c in c tanh(z / c) of each logit z, or off", BOUND, off=True, group="Model",
        axis="3,10,30,off", oracle=FORMULA,
        code={"logits": "logits = {value!r} * torch.tanh(logits / {value!r})"})] = None
    zloss: Annotated[float, Setting(
        "z-loss", "weight of (log Z)^2 in what is minimised; the loss shown is without it", Range(0, 10),
        group="Optimisation", axis="0,0.0001,0.01", oracle=FORMULA)] = 0.0
    decay_on: Annotated[str, Setting("decay on", choices=catalog.DECAYS, group="Optimisation")] = "all"
    parametrisation: Annotated[str, Setting(
        "parametrisation", choices=catalog.PARAMETRISATIONS, group="Optimisation")] = "standard"
    rounding: Annotated[str, Setting(
        "rounding of the stream", choices=catalog.ROUNDINGS, group="Model", tape=("off",))] = "off"
    branch_gain: Annotated[float, Setting(
        "branch gain", "multiplies the output of every branch, on top of the placement's own factor", GAIN,
        group="Model", axis="0.1,0.2,0.5,1,2", oracle=FORMULA)] = 1.0
    weight_gain: Annotated[float, Setting(
        "weight gain", "multiplies the initial matrices of all blocks, on top of the placement's own factor",
        GAIN, group="Model", axis="0.1,0.2,0.5,1,2", oracle=FORMULA)] = 1.0
    family: Annotated[str, Setting("family", choices=catalog.FAMILIES)] = "decoder"
    patch_norm: Annotated[str, Setting(
        "norm on the patches", choices=catalog.PATCH_NORMS, group="Model", axis=None)] = "off"
    held_out_batches: Annotated[int, Setting(
        "held-out batches", "batches that the held-out loss of the last step reads; earlier ones read one",
        Range(1, 256, whole=True), group="Data", axis="1,4,16", training=True)] = 1
    attn_gate: Annotated[str, Setting(
        "attention gate", choices=catalog.ATTN_GATES, group="Attention", tape=("off",))] = "off"
    qk_clip: Annotated[float | None, Setting(
        "QK-clip", "a logit of attention: after a step the queries and keys of a head that had a larger one "
        "shrink (Kimi K2, arXiv:2507.20534), or off",
        BOUND, off=True, group="Attention", axis="3,10,30,off", tape=(None,), training=True, oracle=FORMULA,
        code={"weights": "self.largest = logits.detach().view(B, H, -1).amax((0, 2))  # for QK-clip"})] = None
    loops: Annotated[int, Setting(
        "loops", "passes over depth / loops blocks: all passes share what is learned (arXiv:2502.17416)",
        Range(1, 64, whole=True), group="Model", axis="1,2")] = 1
    # fmt: on

    def __init__(self, /, **values: Any) -> None:
        given = {**_usual(values.get("family")), **values}
        # A value that is its default needs no check, and maps make thousands of configs.
        given = {name: it for name, it in given.items() if it is not DEFAULTS.get(name, ...)}
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _first_sentence(error) from None

    @field_validator("*", mode="before")
    @classmethod
    def _as_written(cls, value: object, info: ValidationInfo) -> object:
        """A value as people and links write it: a yes or no of a switch, "off", "none"."""
        name = str(info.field_name)
        setting = SETTINGS[name]
        if isinstance(value, bool) and setting.choices is not None and "on" in setting.choices:
            return "on" if value else "off"
        if setting.choices is None and _holds_bool(value):
            raise ValueError("neither a number nor a word")
        if setting.off and value in ("off", "none", ""):
            return None
        return "" if DEFAULTS[name] == "" and value == "none" else value

    @field_validator("*")
    @classmethod
    def _is_allowed(cls, value: Any, info: ValidationInfo) -> Any:
        setting = SETTINGS[str(info.field_name)]
        if value not in setting:
            raise ValueError("not allowed")
        if setting.choices is not None:
            return setting.choices[value].key
        return value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0

    @model_validator(mode="after")
    def _together(self) -> RunConfig:
        if sentence := FAMILIES[self.family].refusal(vars(self), DEFAULTS):
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
    def _as_keys_name_it(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Configs that were possible before a setting came are written, and named, as ever."""
        return {k: v for k, v in dump(self).items() if k in WRITTEN or v != DEFAULTS[k]}

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
    def moves_alike(self) -> bool:
        """Whether one rate, weight decay and eps move all parameters, in the one flat buffer."""
        alike = (self.decay_on, self.parametrisation) == ("all", "standard")
        return alike and self.optimizer != "muon"

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
        settings = {name: getattr(self, name) for name in SETTINGS}
        if (key := changes.get("family", self.family)) != self.family and key in FAMILIES:
            before, after = FAMILIES[self.family], FAMILIES[key]
            named = {*before.usual, *after.usual, *before.lacks, *after.lacks}
            unlike = {
                name
                for name in named
                if before.usual.get(name) != after.usual.get(name)
                or (name in before.lacks) != (name in after.lacks)
            }
            unlike |= {"task"} if self.task not in after.tasks else set()
            unlike |= {"scheme"} if places_of(self.family) != places_of(key) else set()
            settings = {name: value for name, value in settings.items() if name not in unlike}
        return RunConfig(**{**settings, **changes})

    def placed(self) -> RunConfig:
        """This config with the norm that its placement holds: its own if it has one."""
        if self.scheme not in catalog.SCHEMES:
            return self
        own = catalog.SCHEMES[self.scheme].norm
        return self.replace(norm=own) if own else self

    def canonical(self) -> str:
        """Canonical JSON: the settings of `WRITTEN` and others not at their default, sorted, no spaces."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @property
    def key(self) -> str:
        """Name of this config's result: engine version and content hash, as "e2-0123456789abcdef"."""
        return f"e{ENGINE}-{hashlib.sha256(self.canonical().encode()).hexdigest()[:16]}"


def seeded(config: RunConfig, seeds: int) -> list[RunConfig]:
    """The settings from their own seeds and the next ones: repeats of a lane, or of a cell of a map. Both
    seeds move together, so that what is compared (the lanes of a duel, the cells of a map) still sees the
    same batches. Raises ConfigError where there is no next seed."""
    return [
        config.replace(init_seed=config.init_seed + k, data_seed=config.data_seed + k)
        for k in range(seeds)
    ]


def seeds_of(config: RunConfig) -> str:
    """The seeds of a run, in words."""
    if config.init_seed == config.data_seed:
        return f"seed {config.init_seed}"
    return f"init seed {config.init_seed}, data seed {config.data_seed}"


class ConfigErrorTogether(ValueError):
    """Inside validation: a sentence about several fields, passed on as it is."""


SETTINGS: dict[str, Setting] = {
    name: next(record for record in field.metadata if isinstance(record, Setting))
    for name, field in RunConfig.model_fields.items()
}
"""The record of each setting, in the order of the fields."""
DEFAULTS: dict[str, Any] = {name: field.default for name, field in RunConfig.model_fields.items()}
CHOICES: dict[str, Registry[Any]] = {
    name: setting.choices for name, setting in SETTINGS.items() if setting.choices is not None
}
RANGES: dict[str, Range] = {
    name: setting.range for name, setting in SETTINGS.items() if setting.range is not None
}


def _usual(family: object) -> dict[str, object]:
    """The settings of a family that differ from those of the decoder."""
    return dict(FAMILIES[family].usual) if isinstance(family, str) and family in FAMILIES else {}


def _not_together(config: RunConfig) -> str | None:
    """A sentence about settings that exclude each other, or None."""
    c, head = config, config.width // config.heads
    if c.positions == "rope" and head % 2:
        return (
            f"positions is rope and each of {c.heads} heads has {head} channels, but RoPE rotates pairs of "
            "channels: choose a width and heads that give an even number"
        )
    task = catalog.TASKS[c.task]
    if c.mask == "none" and not (task.targets_hidden or task.classes):
        others = " or ".join(f"task={other.key}" for other in catalog.TASKS if other.targets_hidden)
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
    if c.loops > 1 and (sentence := _not_looped(c, scheme)):
        return sentence
    slots = scheme.slots(Place(1, c.depth, "attention"))
    sizes = c.qk_norm != "off" or slots.norm_qkv or slots.unit_qk or slots.spectral
    if c.qk_clip is not None and sizes:
        given = f"scheme is {c.scheme}" if c.qk_norm == "off" else f"qk_norm is {c.qk_norm}"
        mended = "another scheme" if c.qk_norm == "off" else "qk_norm=off"
        return (
            f"qk_clip is {c.qk_clip:g} and {given}, but it shrinks the matrices of queries and keys, whose "
            f"size does not decide the logits there: choose {mended} or qk_clip=off"
        )
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


def _not_looped(c: RunConfig, scheme: Scheme) -> str | None:
    """A sentence why the blocks can't share what they learn, or None."""
    if c.depth % c.loops:
        return (
            f"loops is {c.loops} and depth is {c.depth}, but each pass has depth / loops blocks: choose "
            "loops that divide the depth"
        )
    if scheme.streams != "one" or scheme.profiled or len(patterns(c.scheme, c.depth)) > 1:
        return (
            f"loops is {c.loops} and scheme is {c.scheme}, but passes share blocks that are alike and have "
            "one stream: choose another scheme or loops=1"
        )
    if c.qk_clip is not None:
        return (
            f"loops is {c.loops} and qk_clip is {c.qk_clip:g}, but each pass has a largest logit of its own: "
            "choose loops=1 or qk_clip=off"
        )
    return None


LONGEST_LIST = 200
"""Characters of the allowed values that are named beside a value that was perhaps meant."""


def _first_sentence(error: ValidationError) -> ConfigError:
    """Pydantic's first complaint as one sentence of ours."""
    first = error.errors()[0]
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, ConfigErrorTogether):
        return ConfigError(str(inner))
    name = str(first["loc"][0])
    given = first["input"]
    if name not in SETTINGS:
        known = ", ".join(SETTINGS)
        return ConfigError(
            f"unknown setting {_short(name)}: known settings are {known}", name, given
        )
    shown = _short(given)
    allowed, meant = SETTINGS[name].allowed(), ""
    if name in CHOICES and isinstance(given, str):
        if why := CHOICES[name].refusal(given):
            return ConfigError(f"{name} is {shown}: {why}", name, given)
        hint = CHOICES[name].meant(given)
        meant = f".{hint}" if hint else ""
        if hint and len(allowed) > LONGEST_LIST:
            allowed = f"one of {len(CHOICES[name])} (`normviz list` and the Catalogue name them)"
    return ConfigError(f"{name} is {shown}, allowed is {allowed}{meant}", name, given)


def _holds_bool(value: object) -> bool:
    """Whether a value, or one of a list of pairs, is a yes or no; anything deeper is refused anyway."""
    pairs = value if isinstance(value, tuple | list) else (value,)
    inner = (x if isinstance(x, tuple | list) else (x,) for x in pairs)
    return any(isinstance(x, bool) for pair in inner for x in pair)


def _short(given: object) -> str:
    """What was given, at most 60 characters of it."""
    try:
        shown = repr(given)
    except ValueError:  # Python does not print a whole number of thousands of digits
        return "a number of thousands of digits..."
    except RecursionError:
        return "brackets in hundreds of brackets..."
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


# What a run costs, and the engine that trains it.


class Speed(NamedTuple):
    """Seconds of an engine for a step of one block: for its calls, an operation of a matrix product, an
    entry of the attention matrices, and a number of the stream; and for the beginning of a run."""

    call: float
    operation: float
    score: float
    number: float
    begin: float = 0.0


SPEEDS = {
    "eager": Speed(0.75e-3, 1 / 6.5e10, 1.1e-8, 0.0),
    "tape": Speed(0.0, 1 / 7.5e10, 2.6e-9, 2.4e-8),
    "captured": Speed(0.28e-3, 1 / 2.8e13, 0.0, 0.0, begin=0.9),
    "stacked": Speed(5.3e-6, 1 / 2.8e13, 0.0, 0.0),
    "eager on a GPU": Speed(2.6e-3, 1 / 2.8e13, 0.0, 0.0, begin=0.9),
}
"""The first two were fitted on one thread of the development CPUs (2026-11), with widths 32 to 512, sequences
of 16 to 128, and batches of 8 to 64. The tape was between 0.70 and 1.18 times as fast as this says. The
others were fitted to four sizes on an H100 (assets/gpu/h100.md), captured within 7 %; a run began in 0.75
to 1.3 s in three processes that had loaded PyTorch (assets/gpu/h200.md). "stacked" is what each run after the
first adds to a stack."""
SHARE_OF_CELL = 0.35
"""A time step of a recurrent layer takes this share of a block's calls."""
SECONDS_PER_LOGIT = 6e-9
"""Of the output head, where the task is a visitor's text: other tasks have few symbols."""
MUON_CALLS = 2.5e-3
"""Seconds of a step with Muon for the calls of its operations; fitted as `SPEEDS`."""


def parameters_per_block(config: RunConfig) -> int:
    """Weights of one block or recurrent layer, without norms and biases."""
    family = FAMILIES[config.family]
    if family.is_recurrent:
        return 2 * family.gates * config.width**2
    return sum(rows * columns for rows, columns in _matrices(config))


def _matrices(config: RunConfig) -> list[tuple[int, int]]:
    """Rows and columns of each matrix of a block, the smaller number first."""
    d, h = config.width, config.hidden
    square = 4 + 2 * len(catalog.STREAMS[catalog.SCHEMES[config.scheme].streams].matrices)
    square += config.attn_gate == "channel"
    ffn = 3 if config.activation in GATED else 2
    return [(d, d)] * square + [(min(d, h), max(d, h))] * ffn


def positions(config: RunConfig) -> int:
    """Positions of all examples of a step."""
    of_example = FAMILIES[config.family].positions(config.seq_len)
    return catalog.TASKS[config.task].nodes or config.batch * of_example


def engine_here() -> tuple[str, str]:
    """The engine of this machine's runs, and a sentence why it is not the tape, or "".

    A run of which the tape does not have a part uses eager anyway, and its `Started` says why.
    """
    why = unavailable()
    return ("eager", why) if why else ("tape", "")


def engine_on(config: RunConfig, device: str) -> str:
    """The engine that trains a config on this machine's CPU or GPU ("cuda"), by its name in `SPEEDS`."""
    if device == "cuda":
        return "eager on a GPU" if config.zloss else "captured"
    c = config.placed()
    if not FAMILIES[c.family].tape:
        return "eager"
    scheme = catalog.SCHEMES[c.scheme]
    has_tape = scheme.streams == "one" and catalog.NORMS[c.norm].tape
    has_tape &= not scheme.slots(Place(1, c.depth, "attention")).spectral
    has_tape &= all(getattr(c, name) in s.tape for name, s in SETTINGS.items() if s.tape)
    return engine_here()[0] if has_tape else "eager"


def device_of(config: RunConfig) -> tuple[str, str]:
    """The device that trains a config on this machine, "cpu" or "cuda"; and where it chose between both, a
    sentence why."""
    if config.device != "auto" or not has_gpu():
        return ("cuda" if config.device == "cuda" else "cpu"), ""
    cpu, gpu = (estimated_seconds(config, engine_on(config, name)) for name in ("cpu", "cuda"))
    name = "cuda" if gpu < cpu else "cpu"
    return name, (
        f"of the devices the {'GPU' if gpu < cpu else 'CPU'} takes less time, by estimates of "
        f"{gpu:,.1f} s on the GPU and {cpu:,.1f} s on a core of the CPU"
    )


def engine_of(config: RunConfig) -> str:
    """The engine that trains a config on this machine, by its name in `SPEEDS`."""
    return engine_on(config, device_of(config)[0])


def estimated_seconds(config: RunConfig, engine: str | None = None) -> float:
    """Estimated seconds on one CPU thread or on a GPU, forward and backward, by an engine of `SPEEDS`; by
    default by the one that trains the config on this machine."""
    family, tokens = FAMILIES[config.family], positions(config)
    speed = SPEEDS[engine or engine_of(config)]
    cells = config.seq_len * SHARE_OF_CELL if family.is_recurrent else 1.0
    scores = 0 if "heads" in family.lacks else tokens * config.seq_len * config.heads
    scores += tokens**2 * config.width / 64 if family.first == "messages" else 0
    block = (
        speed.call * cells
        + 6 * parameters_per_block(config) * tokens * speed.operation
        + scores * speed.score
        + tokens * config.width * speed.number
    )
    step = logits(config) * SECONDS_PER_LOGIT
    if config.optimizer == "muon":
        block += orthogonalisations(config) * speed.operation
        step += MUON_CALLS
    return speed.begin + (config.steps + 1) * (config.depth * block + step)


def orthogonalisations(config: RunConfig) -> int:
    """Operations by which Muon brings the singular values of a block's matrices close to 1, at each step."""
    return sum(5 * (4 * short**2 * long + 2 * short**3) for short, long in _matrices(config))


def logits(config: RunConfig) -> int:
    """Upper bound on the logits of one step if the task is a visitor's text; else 0."""
    return config.batch * config.seq_len * MAX_SYMBOLS if config.task == "text" else 0


def estimated_gib(config: RunConfig) -> float:
    """Estimated memory in GiB: weights, gradients, optimizer state, and activations for backward."""
    tokens = positions(config)
    weights = 5 * parameters_per_block(config)
    activations = tokens * config.width * (16 + 3 * config.ffn_ratio)
    scores = 4 * tokens * config.seq_len * config.heads
    history = catalog.SCHEMES[config.scheme].history if config.scheme in catalog.SCHEMES else 0
    states = history * config.depth * tokens * config.width
    blocks = config.depth * (weights + activations + scores + states)
    return 4 * (blocks + 3 * logits(config)) / 2**30


def is_quick(config: RunConfig) -> bool:
    """Whether it only measures at initialisation, and by estimate within QUICK_SECONDS and QUICK_GIB."""
    return (
        config.steps == 0
        and estimated_seconds(config) <= QUICK_SECONDS
        and estimated_gib(config) <= QUICK_GIB
    )


def over_budget(config: RunConfig) -> str | None:
    """A sentence if the run exceeds the budget, else None. The time is that of eager on a CPU, or of a GPU
    where the config names that, so that a link is allowed on every machine or on none."""
    on_gpu = config.device == "cuda"
    minutes = estimated_seconds(config, engine_on(config, "cuda") if on_gpu else "eager") / 60
    if minutes > MAX_MINUTES:
        where = "a GPU" if on_gpu else "one CPU core with PyTorch's operations"
        return (
            f"this run would take about {minutes:,.0f} minutes of {where} "
            f"and at most {MAX_MINUTES:g} are allowed: lower steps, depth, width, seq_len or batch"
        )
    gib, most = estimated_gib(config), MAX_GPU_GIB if on_gpu else MAX_GIB
    if gib > most:
        return (
            f"this run would take about {gib:,.1f} GiB of memory and at most {most:g} are "
            "allowed: lower depth, width, seq_len or batch"
        )
    return None


def summary() -> str:
    """The limits as the page states them."""
    depth, width, steps = RANGES["depth"], RANGES["width"], RANGES["steps"]
    return (
        f"Limits: depth {depth.low:g} to {depth.high:g}, width {width.low:g} to {width.high:g}, "
        f"up to {steps.high:,g} steps and {MAX_LANES} lanes; a run may take about "
        f"{MAX_MINUTES:g} minutes of one CPU core with PyTorch's operations and {MAX_GIB:g} GiB "
        "(estimated)."
    )
