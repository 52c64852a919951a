"""A placement of the visitor's own: the slots of a block as boxes to tick, and its gains as fields.

The lane's placement is all there is: a tick writes it as a text (`normviz.catalog.own`), and the boxes show
what the lane has. Its picture, curves and link follow as they do for any placement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import streamlit as st

from normviz.catalog import PLACEMENTS, SCHEMES, own
from normviz.catalog.families import places_of
from normviz.catalog.own import Value, Words
from normviz.catalog.scheme import BRANCHES, Branch
from normviz.charts.palette import ink, paper
from normviz.charts.svg import data_uri
from normviz.config import RunConfig
from normviz.lessons.anatomy.diagram import INK
from normviz.lessons.anatomy.large import in_family
from normviz.runs.lane import LETTERS

from ...session import duel, training
from ...session.backend import SharedBackend
from ...session.duel import Duel
from ...session.markdown import literal
from ...session.page_state import chosen
from ...widgets import page_links, placement
from ...widgets.buttons import button
from . import complaint
from .values import taken

ENTRY = "own"
"""The entry of a lane's placements that opens this; no placement has it as its key."""
START = "pre"
"""What the boxes start from, where the lane's placement cannot be written as slots."""
WIDTH, HEIGHT, ABOVE, STREAM = 344, 128, 34, 102
FORK, JOIN, BOX = 62, 279, (128, 84)
NORM = (54, 34)
"""Width and height of a norm's box."""
PLACES = {
    "norm_fork": ("norm at fork", 2, STREAM),
    "norm_in": ("norm in", 68, ABOVE),
    "norm_inner": ("norm inside", 143, ABOVE + 10),
    "norm_out": ("norm out", 218, ABOVE),
    "norm_skip": ("norm on skip", 143, STREAM),
    "norm_main": ("norm on sum", 288, STREAM),
}
"""The words of each norm's box, and where in the picture it is: left edge and middle, in pixels."""
GAINS = {
    "skip_gain": "skip path ×",
    "branch_gain": "branch ×",
    "main_gain": "sum ×",
    "input_gain": "branch input ×",
    "stream_gain": "stream ×",
    "embed_gain": "+ embedding ×",
    "block_gain": "+ block's input ×",
    own.WEIGHTS: "first weights ×",
}
FLAGS = {
    "norm_qkv": "norm of queries, keys, values",
    "branch_reads": "FFN beside attention",
    "shares_norm": "one norm for both branches",
    "embed_norm": "norm on the embedding",
    "final_norm": "final norm",
}
UNSEEN = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)"
FIELD = 142
USUAL = {"embed_gain": "none", "block_gain": "none"}
HELP = (
    "A number, as in 2; with the depth L or the block b to a power, as in L^-0.5 or 2L^0.25; ~channel or "
    "~sublayer behind it: learned from there. Empty: 1 on a path, none for an added one."
)


Train = Callable[[Duel, SharedBackend], None]
"""What starts all lanes."""


def show(i: int, config: RunConfig, color: str, backend: SharedBackend, train: Train) -> None:
    """The block of a lane with its slots, what they make, and a button that trains it beside Pre-LN."""
    if places_of(config.family) is not None:
        return
    st.session_state.setdefault(opened(i), own.is_own(config.scheme))
    more = st.expander("Your own: put norms into the block", key=opened(i), on_change="rerun")
    if not more.open:
        return
    with more, st.container(key=f"own{i}", gap="small"):
        words = own.words_of(SCHEMES[config.scheme])
        if words is None:
            label, start = SCHEMES.label(config.scheme), SCHEMES.label(START)
            st.caption(literal(f"{label} can't be written as slots: a tick starts from {start}."))
        complaint.under(*_blocks(i, config, _start() if words is None else words, color, backend))
        _train_or_read(i, config, words, backend, train)


def entries(value: str, usual: Sequence[str]) -> tuple[str, ...]:
    """What stands after a lane's usual placements: the lane's if it is another, else what opens the slots."""
    if value not in usual:
        return (value,)
    return (ENTRY,) if value in SCHEMES else ()


def entry(key: str) -> str:
    """The label of a placement, or of what opens the slots."""
    return "Your own" if own.is_own(key) else PLACEMENTS.label(key)


def short(name: str) -> str:
    """ "B Own, warm-up 200" of "B Own: in + out, warm-up 200": a long name would move what is beside it."""
    return re.sub(r"(?<=Own): [^,]*", "", name)


def opened(i: int) -> str:
    """The key of whether the slots of a lane are open."""
    return f"lane{i}_slots"


def open_slots(i: int) -> None:
    """Open the slots of a lane, and its settings, where they are."""
    st.session_state[f"lane{i}_open"] = st.session_state[opened(i)] = True


def _start() -> Words:
    words = own.words_of(SCHEMES[START])
    assert words is not None
    return words


def _blocks(
    i: int, config: RunConfig, words: Words, color: str, backend: SharedBackend
) -> list[str]:
    """Boxes and fields, of both branches at once or of each. Returns the keys of the widgets."""
    differ = any(words.get(("attention", n)) != words.get(("ffn", n)) for n in _BOTH)
    key = f"own{i}_each"
    if differ:
        st.session_state[key] = True
    each = st.toggle("Attention and FFN each with slots of their own", key=key, disabled=differ)
    wheres: tuple[Branch | None, ...] = BRANCHES if each else (None,)
    keys: list[str] = []
    with st.container(horizontal=True, gap="small", key=f"own{i}_blocks"):
        for where in wheres:
            with st.container(key=f"own{i}_block_{where or 'both'}", width=WIDTH, gap=None):
                st.html(f'<span style="{UNSEEN}">Norms of {where or "both branches"}</span>')
                keys += [
                    _tick(i, where, name, label, words, backend)
                    for name, (label, *_) in PLACES.items()
                ]
        with st.container(width="stretch" if each else 250, gap="xsmall"):
            placement.formulas(config)
            placement.gradients(config)
    with st.container(horizontal=True, gap="small"):
        keys += [
            _tick(i, _branch(name, None), name, label, words, backend)
            for name, label in FLAGS.items()
        ]
    for where in wheres:
        names = _BOTH if where else [*GAINS]
        keys += _fields(i, where, [name for name in names if name in GAINS], words, backend)
    if each:
        keys += _fields(i, None, [name for name in GAINS if name not in _BOTH], words, backend)
    _style(i, [in_family(config, each or "branch") for each in wheres], wheres, color)
    return keys


WHOLE = (*own.ENDS, own.WEIGHTS)
"""Words about the whole model."""
_BOTH = [name for name in (*PLACES, *GAINS) if name not in (*own.ONLY, *WHOLE)]


def _branch(name: str, where: Branch | None) -> Branch | None:
    """The branch that a word is about: its only one, or the given one."""
    return None if name in WHOLE else own.ONLY.get(name, where)


def _value(words: Words, where: Branch | None, name: str) -> Value | None:
    """What a word has: in a branch, or in both or in the whole model."""
    return words.get((where, name), words.get(("attention", name)) if where is None else None)


def _tick(
    i: int, where: Branch | None, name: str, label: str, words: Words, backend: SharedBackend
) -> str:
    page_duel, key = duel.duel(), f"own{i}_{where or 'all'}_{name}"
    duel.show(page_duel, key, _value(words, where, name) is not None)
    st.checkbox(
        label, key=key, on_change=taken(_set), args=(page_duel, backend, i, where, name, key)
    )
    return key


def _fields(
    i: int, where: Branch | None, names: Sequence[str], words: Words, backend: SharedBackend
) -> list[str]:
    """Fields of gains, of a branch or of both. Returns their keys."""
    page_duel, keys = duel.duel(), list[str]()
    with st.container(horizontal=True, gap="small"):
        for name in names:
            branch, of = _branch(name, where), f" of {where}".replace("ffn", "FFN") if where else ""
            keys.append(key := f"own{i}_{branch or 'all'}_{name}")
            value = _value(words, branch, name)
            duel.show(page_duel, key, "" if value is None else str(value))
            st.text_input(
                f"{GAINS[name]}{of}", key=key, width=FIELD, placeholder=USUAL.get(name, "1"),
                help=HELP if name == "skip_gain" else None, on_change=taken(_set),
                args=(page_duel, backend, i, branch, name, key),
            )  # fmt: skip
    return keys


def _set(
    page_duel: Duel, backend: SharedBackend, i: int, where: Branch | None, name: str, key: str
) -> None:
    """Write the lane's placement anew, with one word changed."""
    value = chosen(key)
    words = own.words_of(SCHEMES[page_duel.lanes[i].scheme])
    if isinstance(value, str) and ":" in value:  # it would end the word
        page_duel.complain(f"{name} is {value!r}, allowed is {own.FORM}", key)
        return
    parts: dict[tuple[Branch | None, str], Value | str] = dict(_start() if words is None else words)
    of_branches = where is None and name not in WHOLE
    for branch in BRANCHES if of_branches else (where,):
        parts.pop((branch, name), None)
        if value is True or (isinstance(value, str) and value.strip()):
            parts[branch, name] = value if value is True else value.strip()
    duel.change(page_duel, "scheme", own.spelled(parts), i, key)
    training.by_itself(page_duel, backend)


def _train_or_read(
    i: int, config: RunConfig, words: Words | None, backend: SharedBackend, train: Train
) -> None:
    """The button that trains the placement, its text, and the way to all that is derived from it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        button(
            "Train beside Pre-LN", _train, duel.duel(), backend, train, i, key=f"own{i}_train",
            type="primary", icon=":material/play_arrow:",
            help=f"Lane {LETTERS[i]} in a duel with Pre-LN, all else equal",
        )  # fmt: skip
        page_links.anatomy([config], SCHEMES.label(config.scheme))
    if words is not None:
        listed = f"{SCHEMES.label(config.scheme)} of the Catalogue"
        known = "" if own.is_own(config.scheme) else f", {literal(listed)}"
        st.caption(f"In links, maps and commands: `scheme={own.spelled(words)}`{known}")


def _train(page_duel: Duel, backend: SharedBackend, train: Train, i: int) -> None:
    """Train a lane beside one that is Pre-LN with all else equal; without one, in a duel of the two."""
    mine = page_duel.lanes[i]
    beside = mine.replace(scheme="pre")
    if beside not in page_duel.lanes:
        duel.open_lanes(page_duel, (beside, mine), backend, "follow")
    st.session_state[f"lane{i}_open"] = False
    if not all(training.has_result(lane, backend) for lane in page_duel.lanes):
        train(page_duel, backend)


def _style(i: int, names: list[str], wheres: tuple[Branch | None, ...], color: str) -> None:
    """The picture behind the boxes, and where they are in it."""
    dark, box = st.context.theme.type == "dark", f"{_of(i)} label"
    is_on = f"{box}:has(input:checked)"
    rules = [
        f"{_of(i)} {{ position: relative; flex: none; height: {HEIGHT}px; background-repeat: no-repeat; }}",
        f"@media (max-width: 640px) {{ {_of(i)} {{ zoom: .78; }} }}",
        f"@media (min-width: 1001px) {{ {_of(i)} {{ zoom: .93; }} }}",
        f"{_of(i)} > * {{ position: absolute; width: auto; }}",
        f"{box} {{ flex-direction: column; align-items: center; justify-content: center; padding: 0; gap: 0;"
        f"width: {NORM[0]}px; height: {NORM[1]}px; border: 1.5px dashed {INK}; border-radius: 5px;"
        f"background: {paper(dark)}; }}",
        f"{box} > span {{ position: absolute; opacity: 0; }}",
        f"{box} > div:not([data-testid]) {{ display: none; }}",
        f"{box} p {{ font-size: .7rem; line-height: 1.1; text-align: center; }}",
        f"{is_on} {{ background: {color}; border: 1.5px solid {color}; }}",
        f"{is_on} p {{ color: #fff; font-weight: 600; }}",
        f"{box}:has(input:focus-visible) {{ outline: 2px solid; outline-offset: 2px; }}",
    ]
    for where, name in zip(wheres, names, strict=True):
        wires = data_uri(_wires(name.replace("ffn", "FFN"), ink(dark)))
        rules.append(
            f".st-key-own{i}_block_{where or 'both'} {{ background-image: url({wires}); }}"
        )
        rules += [
            f".st-key-own{i}_{where or 'all'}_{slot} {{ left: {x}px; top: {y - NORM[1] // 2}px; }}"
            for slot, (_, x, y) in PLACES.items()
        ]
    st.html(f"<style>{' '.join(rules)}</style>")


def _of(i: int) -> str:
    return f'[class*="st-key-own{i}_block_"]'


def _wires(name: str, words: str) -> str:
    """The stream, the branch above it and their sum, without norms."""
    left, wide = BOX
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" fill="none" '
        f'stroke="{INK}" stroke-width="2" font-family="system-ui, sans-serif" font-size="12">'
        f'<path d="M0 {STREAM}H{WIDTH}M{FORK} {STREAM}V{ABOVE}H{JOIN}V{STREAM}"/>'
        f'<rect x="{left}" y="2" width="{wide}" height="64" rx="6" fill="{INK}" stroke="none"/>'
        f'<text x="{left + wide / 2}" y="17" text-anchor="middle" fill="#fff" stroke="none">{name}</text>'
        f'<circle cx="{JOIN}" cy="{STREAM}" r="8" fill="{INK}"/>'
        f'<path d="M{JOIN - 5} {STREAM}h10M{JOIN} {STREAM - 5}v10" stroke="#fff"/>'
        f'<text x="2" y="{STREAM - 22}" fill="{words}" stroke="none">x</text>'
        f'<text x="{WIDTH - 14}" y="{STREAM - 22}" fill="{words}" stroke="none">x⁺</text></svg>'
    )
