"""The widgets of the settings that all lanes share. Each writes its value to all lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from normviz.catalog import CELLS
from normviz.config import CHOICES, RANGES, SETTINGS, RunConfig, estimated_seconds
from normviz.links import shown
from normviz.policy import Refused
from normviz.runs import Run
from normviz.training.schedule import peak_at

from ...session import duel, training, visitor
from ...session.backend import SharedBackend
from ...session.duel import Duel
from ...session.markdown import capital, literal
from ...session.page_state import chosen
from ...session.policy import policy
from . import complaint, own_text, transport
from .lanes import Lane
from .values import taken

LADDER = tuple(float(f"{m}e{e}") for e in range(-5, 1) for m in (1, 3))
DEPTHS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1000)
WARMUPS = (0, 10, 20, 50, 100, 200, 400, 800)
STEPS = (0, 20, 50, 100, 150, 200, 300, 400, 600, 1000, 2000, 5000)
GROUPS = {
    group: [name for name, setting in SETTINGS.items() if setting.group == group]
    for group in ("Model", "Attention", "Optimisation", "Data")
}
"""The settings of the expander "All settings" that have a group."""
CHANGED = "Changed"


def show(lanes: list[Lane], backend: SharedBackend) -> None:
    """Four sliders, then all other settings in an expander."""
    configs = [lane.config for lane in lanes]
    title = "Depth (recurrent layers)" if configs[0].scheme in CELLS else "Depth (blocks)"
    with st.container(key="sliders"):
        _slide("depth", title, configs, DEPTHS, backend)
        _rate(lanes, backend)
        _slide("warmup", "Warm-up (steps)", configs, WARMUPS, backend)
        _slide("steps", "Steps", configs, STEPS, backend)
    _all(lanes, configs, backend)
    seeds = duel.duel().seeds
    seconds = seeds * sum(estimated_seconds(config) for config in configs)
    each = f" and {seeds} seeds" if seeds > 1 else ""
    st.caption(f"About {seconds:.0f} s of one CPU core for all lanes{each}.")


def _all(lanes: list[Lane], configs: Sequence[RunConfig], backend: SharedBackend) -> None:
    """The expander of all other settings. Those of the groups are rendered once it is open."""
    usual = RunConfig()
    every = ["norm", "init", *(name for names in GROUPS.values() for name in names)]
    changed = [n for n in every if any(getattr(c, n) != getattr(usual, n) for c in configs)]
    more = st.expander("All settings", key="more", on_change="rerun")
    with more:
        _choose("family", configs, backend)
        own_text.task(configs, _title("task", configs), "knob_task", backend)
        _number("init_seed", configs, backend)
        transport.show_more(lanes, backend)
        if more.open:
            _groups(changed, every, configs, backend)
        st.caption(policy().summary())
    if changed:  # below, so that "All settings" stays on the first screen
        st.caption(f"Changed: {literal(', '.join(_said(name, configs) for name in changed))}.")


def _groups(
    changed: list[str], every: list[str], configs: Sequence[RunConfig], backend: SharedBackend
) -> None:
    """The settings of a group, those that differ from the default, or those that the search finds."""
    words = st.text_input(
        "Find a setting", key="more_find", placeholder="Muon, RoPE, dropout"
    ).split()
    groups = [CHANGED] * bool(changed) + list(GROUPS)
    if st.session_state.get("more_group") not in groups:
        st.session_state["more_group"] = groups[0]
    group = st.pills("Group", groups, key="more_group", label_visibility="collapsed", wrap=True)
    names = changed if group == CHANGED else GROUPS.get(group or "", ())
    if words:
        names = [name for name in every if all(w.lower() in _about(name) for w in words)]
    for name in names:
        (_choose if name in CHOICES else _number)(name, configs, backend)
    if words and not names:
        titles = ", ".join(SETTINGS[name].title for name in every)
        given = literal(repr(" ".join(words)))
        st.caption(f"No setting has {given} in its name, choices or help. There are: {titles}.")


def _said(name: str, configs: Sequence[RunConfig]) -> str:
    """A setting with its value, or with those of the lanes, as in "optimizer Muon"."""
    values = dict.fromkeys(shown(name, getattr(config, name)) for config in configs)
    return f"{SETTINGS[name].title} {' or '.join(values)}"


def _about(name: str) -> str:
    """All words about a setting, in lower case, for the search."""
    words = [name, SETTINGS[name].title, SETTINGS[name].about]
    if name in CHOICES:
        words += [f"{choice.key} {choice.label} {choice.sentence}" for choice in CHOICES[name]]
    return " ".join(words).lower()


def _key(name: str, value: object) -> str:
    """The widget's key. Sets the widget to the stored value, unless a refused one is in it."""
    duel.show(duel.duel(), f"knob_{name}", value)
    return f"knob_{name}"


def _title(name: str, configs: Sequence[RunConfig]) -> str:
    """The widget's label, with a mark if the lanes differ."""
    title = capital(SETTINGS[name].title)
    values = {getattr(config, name) for config in configs}
    return f"{title} :orange[(lanes differ)]" if len(values) > 1 else title


def _by_lane(title: str, values: Sequence[float]) -> str:
    """A slider's label, with the lanes' values if they differ. They are not in its options: a browser sends
    what is written at the one that it shows, and with an unknown one Streamlit takes the first."""
    every = " / ".join(f"{value:g}" for value in values)
    return f"{title} :orange[({every})]" if len(set(values)) > 1 else title


def _help(name: str) -> str | None:
    about = SETTINGS[name].about
    limit = f"Allowed: {RANGES[name].text()}." if name in RANGES else None
    parts = (about and f"{capital(about)}.", limit, policy().help(name))
    return " ".join(part for part in parts if part) or None


def _slide(
    name: str,
    title: str,
    configs: Sequence[RunConfig],
    stops: Sequence[int],
    backend: SharedBackend,
) -> None:
    values = [getattr(config, name) for config in configs]
    key = _key(name, values[0])
    st.select_slider(
        _by_lane(title, values), sorted({*stops, values[0]}), key=key, help=_help(name),
        on_change=taken(_take), args=(duel.duel(), backend, name, key),
    )  # fmt: skip
    complaint.under(key)


def _rate(lanes: list[Lane], backend: SharedBackend) -> None:
    """The learning rate, in steps of 1, 3, 10. The only setting that can change during training.

    Shows the rate set last, of the first lane that trains if there is one.
    """
    trains = [lane for lane in lanes if lane.is_current and _takes_rate(lane.run)]
    leading = (trains or lanes)[0]
    peaks = [peak_at(lane.config, lane.config.steps) for lane in lanes]
    value = peaks[leading.index]
    key = _key("lr", value)
    title = "Learning rate" + (" (acts at once)" if trains else "")
    st.select_slider(
        _by_lane(title, peaks), sorted({*LADDER, value}), key=key, help=_help("lr"),
        format_func="{:g}".format, on_change=taken(_set_rate), args=(duel.duel(), backend, key),
    )  # fmt: skip
    complaint.under(key)
    if edits := leading.config.lr_edits:
        later = ", ".join(f"{lr:g} from step {step}" for step, lr in edits)
        st.caption(f"{leading.config.lr:g} at first, {later}.")


def _takes_rate(run: Run | None) -> bool:
    """Whether this visitor may change the run's learning rate."""
    return run is not None and run.is_open and visitor.steers(run)


def _choose(name: str, configs: Sequence[RunConfig], backend: SharedBackend) -> None:
    value = getattr(configs[0], name)
    key = _key(name, value)
    registry = CHOICES[name]
    st.selectbox(
        _title(name, configs), registry.keys(), key=key,
        format_func=registry.label, help=registry[value].sentence, on_change=taken(_take),
        args=(duel.duel(), backend, name, key),
    )  # fmt: skip
    complaint.under(key)


def _number(name: str, configs: Sequence[RunConfig], backend: SharedBackend) -> None:
    """A number in a text field, because a number field would clamp what is typed."""
    value = getattr(configs[0], name)
    key = _key(name, shown(name, value))
    st.text_input(
        _title(name, configs), key=key, help=_help(name), on_change=taken(_take),
        args=(duel.duel(), backend, name, key),
    )  # fmt: skip
    complaint.under(key)


def _take(page_duel: Duel, backend: SharedBackend, name: str, key: str) -> None:
    value: Any = chosen(key)
    duel.change(page_duel, name, value.strip() if isinstance(value, str) else value, widget=key)
    training.by_itself(page_duel, backend)


def _set_rate(page_duel: Duel, backend: SharedBackend, key: str) -> None:
    """Set a new rate in all runs that train, at the same step.

    A lane without such a run, or with a run of earlier settings, gets it as an ordinary setting.
    """
    rate = chosen(key)
    runs = duel.catch_up(page_duel, backend)
    current = [run is not None and run.config == page_duel.lanes[i] for i, run in enumerate(runs)]
    trains = [run for run, same in zip(runs, current, strict=True) if same and _takes_rate(run)]
    if not trains:
        duel.change(page_duel, "lr", rate, widget=key)
        training.by_itself(page_duel, backend)
        return
    page_duel.complain(None)
    for i, same in enumerate(current):
        if not same:
            duel.change(page_duel, "lr", rate, i, key)
    # Before the rate is set: the lanes of `trains` take it over at the next look at the store, and until then
    # they would count as settings without a result.
    training.by_itself(page_duel, backend)
    asked = [run for run in trains if run and peak_at(run.trained, run.trained.steps) != rate]
    try:
        if asked and backend.store.set_rate([run.id for run in asked], rate) is None:
            page_duel.complain(
                "the runs are at their last steps: their learning rate can't change any more"
            )
    except Refused as why:
        page_duel.complain(str(why))
