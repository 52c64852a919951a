"""Links: a page's settings as parameters of its address; and those of a duel.

A duel's link has a version, and the settings that differ from the values of that version:

    v=1&scheme=pre,post&depth=24

A setting that all lanes share is written once. One that differs is written once per lane, separated
by commas. A setting that the link does not name has its value in `PINNED`, so the meaning of a link
does not change when a default does. Links of earlier releases name every setting, and are read too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from .catalog.registry import cut
from .config import CHOICES, DEFAULTS, RANGES, SETTINGS, WRITTEN, ConfigError, RunConfig
from .limits import MAX_LANES

VERSION = 1
FIELDS = tuple(SETTINGS)
VIEW = ("probe", "view", "seeds")
"""Parameters of a link that set the view of a duel and not its result."""
CURSOR = ("at", "layer")
"""Parameters of a link that set the cursor of the charts: a step and a layer."""
BESIDE = "beside"
"""The parameter of a link that names an observed run, whose charts are shown beside the lanes."""
STREAMLIT = ("embed", "embed_options")
"""Parameters that Streamlit reads."""
PRESENT = "present"
"""The parameter of any page's link with which the Duel page is larger, for a projector."""
APPENDED = re.compile(r"utm_\w+|fbclid|gclid|msclkid|igshid|mc_[ce]id|si|ref")
"""Tracking parameters that messengers and mails append to any address."""
Params = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Codec:
    """The links of one page.

    fields   names of its settings, in the order of a link
    pinned   what a link means by a setting that it does not name. Links that were copied rely on it: a
             default may change, this may not
    view     names that set what is looked at, and no setting
    version  empty for links that have none
    """

    fields: tuple[str, ...]
    pinned: Mapping[str, str] = field(default_factory=dict)
    view: tuple[str, ...] = ()
    version: str = str(VERSION)

    def reads(self, params: Params) -> bool:
        """Whether parameters of an address are a link of this page at all: messengers append their own."""
        return any(name in params for name in ("v", *self.fields))

    def problems(self, params: Params) -> list[str]:
        """A sentence for each setting that is given more than once, and for another version."""
        sentences = [
            f"the link gives {name} {len(params[name])} times, allowed is once"
            for name in ("v", *self.fields)
            if len(params.get(name, ())) > 1
        ]
        version = next(iter(params.get("v", ())), self.version)
        if self.version and version != self.version:
            sentences.append(
                f"the link has version {cut(version)}, allowed is {self.version}: it may come from another "
                "release of NormViz"
            )
        return sentences

    def given(self, params: Params) -> dict[str, str]:
        """The word of each setting that a link names; the first one, where it names more."""
        return {name: params[name][0] for name in self.fields if params.get(name)}

    def words(self, params: Params) -> dict[str, str]:
        """What a link says of each setting: its word, or the pinned one."""
        return {**self.pinned, **self.given(params)}

    def others(self, params: Params) -> list[str]:
        """A sentence about names in a link that this page does not know, if there are any."""
        unknown = set(params) - {"v", *self.fields, *self.view, *STREAMLIT, PRESENT}
        names = sorted(name for name in unknown if not APPENDED.fullmatch(name))
        if not names:
            return []
        named = ", ".join(cut(name) for name in names[:5])
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        which = "which is not a setting" if len(names) == 1 else "which are not settings"
        return [f"The link also names {named}{more}, {which} here: not used."]

    def params(self, words: Mapping[str, str], always: Collection[str] = ()) -> dict[str, str]:
        """The parameters of a link: the settings that are not as pinned, and those of `always`."""
        parameters = {
            name: words[name]
            for name in self.fields
            if name in words and (name in always or words[name] != self.pinned.get(name))
        }
        return ({"v": self.version} if self.version else {}) | parameters


@dataclass(frozen=True)
class Problem:
    """A problem of a link: a sentence, and if one is well defined the query that mends it, and what that
    sets, as in "depth = 96"."""

    sentence: str
    mended: str | None = None
    offer: str | None = None


@dataclass(frozen=True)
class Link:
    """A parsed link. `lanes` is empty if there are problems. `missing` are the settings of `WRITTEN` that it
    does not name."""

    lanes: tuple[RunConfig, ...] = ()
    problems: tuple[Problem, ...] = ()
    missing: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def as_params(lanes: Sequence[RunConfig]) -> dict[str, str]:
    """The parameters of a duel of 1 to 4 lanes: version, and every setting that is not as pinned.

    The number of lanes is named where no setting differs among them.
    """
    columns = {name: [as_word(getattr(lane, name)) for lane in lanes] for name in FIELDS}
    words = {
        name: column[0] if len(set(column)) == 1 else ",".join(column)
        for name, column in columns.items()
    }
    differ = any(len(set(column)) > 1 for column in columns.values())
    count = {} if differ or len(lanes) == 1 else {"lanes": str(len(lanes))}
    return DUEL.params(count | words)


def pinned() -> RunConfig:
    """The settings of a link that names none."""
    return RunConfig(**{name: _value(name, word) for name, word in PINNED.items()})


def encode(lanes: Sequence[RunConfig]) -> str:
    """The query string of a duel of 1 to 4 lanes."""
    return query(as_params(lanes))


def query(params: Mapping[str, str]) -> str:
    """Parameters as the query string of an address. The signs between values are not escaped."""
    # A word of a terminal may hold bytes that are no text, and a link can't.
    return urlencode(params, quote_via=quote, safe=",:;=", errors="replace")


def decode(link: str | Params, offers: bool = True) -> Link:
    """Read a link, a query string, or the parameters of one. Never raises for what they hold.

    Without `offers`, problems have no links that mend them.
    """
    try:
        params = link if isinstance(link, Mapping) else _params(link)
    except ValueError as error:
        return Link(problems=(Problem(f"the link can't be read: {error}"),))
    params = {name: values for name, values in params.items() if values}
    problems = list(_problems_of_form(params))
    if problems:
        return Link(problems=tuple(problems))
    words = DUEL.words(params)
    n_lanes = int(words["lanes"]) if "lanes" in words else _widest(params)
    columns = {name: words[name].split(",") for name in FIELDS}
    lanes: list[RunConfig] = []
    for i in range(n_lanes):
        values = {
            name: _value(name, col[i if len(col) > 1 else 0]) for name, col in columns.items()
        }
        try:
            lanes.append(RunConfig(**values))
        except ConfigError as error:
            problems.append(_problem(error, params, i))
    if problems:
        unique = {problem.sentence: problem for problem in problems}
        distinct = tuple(unique.values())
        return Link(
            problems=tuple(_checked_offer(p, len(distinct)) for p in distinct)
            if offers
            else distinct
        )
    missing = tuple(name for name in FIELDS if name not in params and name in WRITTEN)
    return Link(lanes=tuple(lanes), missing=missing, notices=tuple(DUEL.others(params)))


def _params(text: str) -> Params:
    after = urlsplit(text).query if "?" in text else text
    return parse_qs(after, keep_blank_values=True, max_num_fields=200)


def as_word(value: Any) -> str:
    """A value as links write it."""
    if value is None:
        return "off"
    if value == "":
        return "none"
    if isinstance(value, tuple):
        return ";".join(f"{step}:{lr!r}" for step, lr in value) or "none"
    return repr(value) if isinstance(value, float) else str(value)


PINNED: Mapping[str, str] = {name: as_word(default) for name, default in DEFAULTS.items()}
"""What a link of version 1 means by a setting that it does not name, as links write it. Links that
were copied rely on it: where a default of `RunConfig` changes, its word from before is added here."""
DUEL = Codec(("lanes", *FIELDS), PINNED, ("preset", "story", BESIDE, *VIEW, *CURSOR))
"""A duel of 1 to 4 lanes. A setting that differs among them has a word for each, separated by commas."""


def _value(name: str, word: str) -> Any:
    if name != "lr_edits":
        return word
    if word in ("none", ""):
        return ()
    return tuple(tuple(pair.split(":")) for pair in word.split(";"))


def _widest(params: Params) -> int:
    return max((params[name][0].count(",") + 1 for name in FIELDS if name in params), default=1)


def _problems_of_form(params: Params) -> list[Problem]:
    """Repeats, a bad version or lane count, and settings with another number of values."""
    problems = [Problem(sentence) for sentence in DUEL.problems(params)]
    lanes = params.get("lanes", [str(max(1, _widest(params)))])[0]
    if lanes not in {str(n) for n in range(1, MAX_LANES + 1)}:
        problems.append(
            Problem(f"lanes is {cut(lanes)}, allowed is a whole number from 1 to {MAX_LANES}")
        )
        return problems
    for name in FIELDS:
        count = params[name][0].count(",") + 1 if name in params else 1
        if count not in (1, int(lanes)):
            problems.append(
                Problem(f"{name} has {count} values for {lanes} lanes, allowed is one value for "
                        "all lanes or one for each")
            )  # fmt: skip
    return problems


def _problem(error: ConfigError, params: Params, lane: int) -> Problem:
    """The sentence for a bad value, and the link with the nearest allowed value."""
    name = error.field
    if name is None or name not in RANGES or not isinstance(error.given, str):
        return Problem(str(error))
    try:
        nearest = RANGES[name].nearest(float(error.given))
    except (ValueError, OverflowError):
        return Problem(str(error))
    if nearest is None or (RANGES[name].whole and nearest != int(nearest)):
        return Problem(str(error))
    word = str(int(nearest)) if RANGES[name].whole else repr(nearest)
    words = params[name][0].split(",")
    words[lane if len(words) > 1 else 0] = word
    mended = {key: values[0] for key, values in params.items()} | {name: ",".join(words)}
    return Problem(str(error), query(mended), f"{name} = {word}")


def _checked_offer(problem: Problem, n_problems: int) -> Problem:
    """The problem, without its offer if that would only lead to another problem."""
    if problem.mended is None or len(decode(problem.mended, False).problems) < n_problems:
        return problem
    return Problem(problem.sentence)


def settings(words: Sequence[str]) -> dict[str, Any]:
    """`key=value` words of a command line as config values. Raises ConfigError for another form."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"{word!r} is not a setting: write key=value, as in depth=24")
        if name in values:
            raise ConfigError(f"{name} is given twice: give it once", name, value)
        values[name] = _value(name, value)
    return values


def differences(lane: RunConfig, other: RunConfig) -> dict[str, tuple[str, str]]:
    """Settings in which a lane differs from another: name -> (the other's value, the lane's), as people read
    them."""
    return {
        name: (shown(name, getattr(other, name)), shown(name, getattr(lane, name)))
        for name in FIELDS
        if getattr(lane, name) != getattr(other, name)
    }


def shown(name: str, value: Any) -> str:
    """A setting's value as people read it: a registry's label, "off", or a short number."""
    if name in CHOICES:
        return CHOICES[name].label(value)
    if name == "text":
        return f"{value[:8]}…" if value else "none"
    if isinstance(value, tuple):
        return ", ".join(f"{lr:g} from step {step}" for step, lr in value) or "none"
    return "off" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
