"""A duel as a link: every setting that decides the result, in plain text, plus a version.

    v=1&lanes=2&scheme=pre,post&depth=12&lr=0.003&...

A setting that all lanes share is written once. One that differs is written once per lane, separated
by commas. The link names every field, so its meaning does not change when a default does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from .catalog import PROBES
from .config import CHOICES, ConfigError, RunConfig
from .limits import MAX_LANES, RANGES, SEEDS

VERSION = 1
FIELDS = tuple(RunConfig.model_fields)
UNSAID = ("text",)
"""Left out if no lane has one: such a link means the same in every release."""
Params = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Problem:
    """A problem of a link: a sentence, and the query that mends it if one is well defined."""

    sentence: str
    mended: str | None = None
    offer: str | None = None


@dataclass(frozen=True)
class Link:
    """A parsed link. `lanes` is empty if there are problems. `missing` fields took defaults."""

    lanes: tuple[RunConfig, ...] = ()
    problems: tuple[Problem, ...] = ()
    missing: tuple[str, ...] = ()
    notices: tuple[str, ...] = field(default=())


def as_params(lanes: Sequence[RunConfig]) -> dict[str, str]:
    """The parameters of a duel of 1 to 4 lanes: version, number of lanes, every setting."""
    params: dict[str, str] = {"v": str(VERSION), "lanes": str(len(lanes))}
    for name in FIELDS:
        words = [as_word(getattr(lane, name)) for lane in lanes]
        if name in UNSAID and set(words) == {"none"}:
            continue
        params[name] = words[0] if len(set(words)) == 1 else ",".join(words)
    return params


def encode(lanes: Sequence[RunConfig]) -> str:
    """The query string of a duel of 1 to 4 lanes."""
    return urlencode(as_params(lanes), quote_via=quote, safe=",:;")


def decode(query: str | Params, offers: bool = True) -> Link:
    """Parse a link, a query string, or its parameters. Never raises because of their content.

    Without `offers`, problems have no links that mend them.
    """
    try:
        params = query if isinstance(query, Mapping) else _params(query)
    except ValueError as error:
        return Link(problems=(Problem(f"the link can't be read: {error}"),))
    params = {name: values for name, values in params.items() if values}
    problems = list(_problems_of_form(params))
    if problems:
        return Link(problems=tuple(problems))
    n_lanes = int(params["lanes"][0]) if "lanes" in params else _widest(params)
    columns = {name: params[name][0].split(",") for name in FIELDS if name in params}
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
        found = tuple(unique.values())
        return Link(problems=tuple(_honest(p, len(found)) for p in found) if offers else found)
    missing = tuple(name for name in FIELDS if name not in params and name not in UNSAID)
    notices = tuple(_notices(params, missing))
    return Link(lanes=tuple(lanes), missing=missing, notices=notices)


def names_a_setting(params: Params) -> bool:
    """Whether the parameters contain any setting; messengers append parameters of their own."""
    return any(name in params for name in ("v", "lanes", *FIELDS))


def _params(text: str) -> Params:
    query = urlsplit(text).query if "?" in text else text
    return parse_qs(query, keep_blank_values=True, max_num_fields=200)


def as_word(value: Any) -> str:
    """A value as links write it."""
    if value is None:
        return "off"
    if value == "":
        return "none"
    if isinstance(value, tuple):
        return ";".join(f"{step}:{lr!r}" for step, lr in value) or "none"
    return repr(value) if isinstance(value, float) else str(value)


def _value(name: str, word: str) -> Any:
    if name != "lr_edits":
        return word
    if word in ("none", ""):
        return ()
    return tuple(tuple(pair.split(":")) for pair in word.split(";"))


def _widest(params: Params) -> int:
    return max((params[name][0].count(",") + 1 for name in FIELDS if name in params), default=1)


def _problems_of_form(params: Params) -> list[Problem]:
    """Repeats, a bad version or lane count, and settings with a wrong number of values."""
    found = [
        Problem(f"the link gives {name} {len(params[name])} times, allowed is once")
        for name in ("v", "lanes", *FIELDS)
        if len(params.get(name, [""])) > 1
    ]
    version = params.get("v", [str(VERSION)])[0]
    if version != str(VERSION):
        found.append(
            Problem(f"the link has version {cut(version)}, allowed is {VERSION}: it may come from "
                    "another release of NormViz")
        )  # fmt: skip
    lanes = params.get("lanes", [str(max(1, _widest(params)))])[0]
    if lanes not in {str(n) for n in range(1, MAX_LANES + 1)}:
        found.append(
            Problem(f"lanes is {cut(lanes)}, allowed is a whole number from 1 to {MAX_LANES}")
        )
        return found
    for name in FIELDS:
        count = params[name][0].count(",") + 1 if name in params else 1
        if count not in (1, int(lanes)):
            found.append(
                Problem(f"{name} has {count} values for {lanes} lanes, allowed is one value for "
                        "all lanes or one for each")
            )  # fmt: skip
    return found


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
    # A command-line word may hold bytes that are not text, and a link can't contain them.
    query = urlencode(mended, quote_via=quote, safe=",:;", errors="replace")
    return Problem(str(error), query, f"{name} = {word}")


def _honest(problem: Problem, n_problems: int) -> Problem:
    """The problem, without its offer if that would only lead to another problem."""
    if problem.mended is None or len(decode(problem.mended, False).problems) < n_problems:
        return problem
    return Problem(problem.sentence)


VIEWS = ("heat", "ratio", "lines", "walk")
"""Charts below the loss and the bars; the first one is the default."""
SEEDS_SHOWN = ("1", str(SEEDS))
VIEW = ("probe", "view", "seeds")
"""Parameters of a link that set the view of a duel and not its result."""


def _notices(params: Params, missing: tuple[str, ...]) -> list[str]:
    """Notices about a link that was read without a problem."""
    notices = []
    if missing:
        named = ", ".join(missing[:5]) + (" and others" if len(missing) > 5 else "")
        notices.append(
            f"The link does not name {named}: today's defaults fill in, so it may mean something "
            "else in another release. Copy the link again to fix every setting."
        )
    return notices + view_notices(params)


def view_notices(params: Params) -> list[str]:
    """A sentence for each unknown value of a view parameter, and for names that are not settings."""
    found = [
        f"The link gives {name} {len(params[name])} times, allowed is once: the first one is used."
        for name in (*VIEW, "story")
        if len(params.get(name, [""])) > 1
    ]
    probe, view, seeds = (params.get(name, [""])[0] for name in VIEW)
    if probe and probe not in PROBES:
        found.append(f"The link names {PROBES.unknown(probe[:40])} The page shows grad_block.")
    if view and view not in VIEWS:
        found.append(
            f"The link names the view {cut(view)}, allowed are {', '.join(VIEWS)}. The page shows "
            f"{VIEWS[0]}."
        )
    if seeds and seeds not in SEEDS_SHOWN:
        found.append(
            f"The link asks for {cut(seeds)} seeds, allowed is {' or '.join(SEEDS_SHOWN)}. The page "
            f"shows {SEEDS_SHOWN[0]}."
        )
    return found + strangers(params, {"v", "lanes", "story", *VIEW, *FIELDS})


PAGE = ("embed", "embed_options")
"""Parameters that Streamlit reads."""
APPENDED = re.compile(r"utm_\w+|fbclid|gclid|msclkid|igshid|mc_[ce]id|si|ref")
"""Tracking parameters that messengers and mails append to any address."""


def strangers(params: Params, known: Collection[str]) -> list[str]:
    """A sentence about names in a link that are not settings, if there are any."""
    named = set(params) - {*known, *PAGE}
    others = sorted(name for name in named if not APPENDED.fullmatch(name))
    if not others:
        return []
    named = ", ".join(cut(name) for name in others[:5])
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    which = "which is not a setting" if len(others) == 1 else "which are not settings"
    return [f"The link also names {named}{more}, {which} here: not used."]


def cut(word: str) -> str:
    """A link's value, quoted, cut to 40 characters."""
    return repr(word if len(word) <= 40 else f"{word[:40]}…")


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
    """Fields that differ between two lanes: field -> (first value, second value), as people read them."""
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
