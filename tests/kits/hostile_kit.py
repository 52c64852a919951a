"""Hostile input for links: values of parameters, and whole links made of them."""

from __future__ import annotations

from random import Random
from urllib.parse import quote_plus

from normviz.config import CHOICES, RANGES
from normviz.lessons.by_hand.links import NAMES as HAND
from normviz.lessons.choose.answers import NAMES as CHOOSE
from normviz.links import FIELDS, VIEW
from normviz.studies.maps.link import NAMES as MAPS

SCRIPTS = (
    "<img src=x onerror=window.pwned=1>", "<script>window.pwned=1</script>", "javascript:window.pwned=1",
    "[x](javascript:window.pwned=1)", "<svg/onload=window.pwned=1>", "\"><iframe srcdoc='<script>1'>",
    "$\\href{javascript:window.pwned=1}{x}$", ":red[x] **b** `c` ~~d~~", "![x](http://192.0.2.1/x.png)",
    "datum.x); window.pwned=1; (", '{"signal": "window.pwned=1"}', "{{7*7}}${7*7}#{7*7}",
    "'+window.constructor.constructor('window.pwned=1')()+'",
)  # fmt: skip
STRANGE = (
    "", " ", "\0", "\n\r\t", "\u202eevil\u202c", "\u200b\ufeff", "\ud800", "é" * 50, "𝟛", "٣", "½", "1_000",
    "1e400", "-1e400", "nan", "inf", "-0.0", "0x10", "1e-400", "9" * 400, "1,2,3,4,5,6", ",,,,", ";;", ":",
    "1:2:3", "1:0.1;1:0.1", "true", "None", "null", "off", "none", "[]", "{}", "[" * 2000,
    '{"a":' * 500, "../../etc/passwd", "/etc/passwd\0.txt", "C:\\windows\\win.ini", "file:///etc/passwd",
    "'; DROP TABLE runs; --", "1 OR 1=1", "%00", "%s%n", "a" * 20_000, "\U0001f4a9" * 300,
)  # fmt: skip
NAMES = (
    *FIELDS, *VIEW, *HAND, *MAPS, *CHOOSE, "v", "lanes", "story", "embed", "embed_options", "claim", "run",
    "__proto__", "constructor", "v[]", "", "\0", "depth ", "DEPTH", "utm_source",
)  # fmt: skip
"""The parameters of all pages, and names that no page has."""


def word(random: Random, name: str) -> str:
    """A value for a parameter: often nearly valid, else hostile. Some are lists."""
    if random.random() < 0.15:
        return ",".join(_one(random, name)[:40] for _ in range(random.randint(2, 4)))
    return _one(random, name)


def _one(random: Random, name: str) -> str:
    kind = random.random()
    if kind < 0.4 and (name in RANGES or name in CHOICES):
        return _near(random, name)
    if kind < 0.55:
        return "".join(chr(random.randrange(1, 0xD7FF)) for _ in range(random.randint(1, 12)))
    if kind < 0.75:
        return random.choice(SCRIPTS)
    if kind < 0.97:
        return random.choice(STRANGE)
    return random.choice(STRANGE + SCRIPTS) * random.randint(2, 2000)


def _near(random: Random, name: str) -> str:
    if name in CHOICES:
        return random.choice(CHOICES[name].keys())
    span = RANGES[name]
    near = (span.low, span.high, span.low - 1, span.high + 1, random.uniform(span.low, 50), 3)
    value = random.choice(near)
    return str(int(value)) if random.random() < 0.7 else repr(value)


def link(random: Random) -> dict[str, list[str]]:
    """The parameters of a hostile link: one to eight, some repeated. One link in four is nearly valid."""
    if random.random() < 0.25:
        names = random.sample((*RANGES, *CHOICES), random.randint(1, 5))
        return {"v": ["1"], **{name: [_near(random, name)] for name in names}}
    n = random.randint(1, 8)
    names = ["v"] * (random.random() < 0.3)
    names += random.sample(NAMES, n)
    found = {name: [word(random, name)] for name in names}
    if random.random() < 0.15:
        name = random.choice(names)
        found[name].append(word(random, name))
    if found.get("v") and random.random() < 0.9:
        found["v"] = ["1"]
    return {name: [value[:1_000_000] for value in values] for name, values in found.items()}


def query(params: dict[str, list[str]]) -> str:
    """A link's parameters as a query string."""
    return "&".join(
        f"{quote_plus(name, errors='replace')}={quote_plus(value, errors='replace')}"
        for name, values in params.items()
        for value in values
    )
