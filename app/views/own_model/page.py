"""The page Your model: the anatomy of a model type or of a pasted config.json, without training it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import streamlit as st

from normviz.catalog import SCHEMES
from normviz.catalog.models import census
from normviz.catalog.registry import meant
from normviz.config import ConfigError, RunConfig
from normviz.home import home
from normviz.lessons.anatomy.untrained import DEPTHS
from normviz.lessons.choose.answers import Answers, as_params, measured_at, nearest, options
from normviz.lessons.choose.facts import norms
from normviz.links import Codec, cut
from normviz.links import as_params as as_lanes
from normviz.own_model import shipped
from normviz.own_model.client import MAX_CHARACTERS, NotInspected, inspect_pasted
from normviz.own_model.report import Anatomy, StackFound
from normviz.studies.maps.grid import SweepError
from normviz.studies.maps.link import beside, map_of

from ...session import address
from ...session.markdown import capital, literal
from ...session.policy import policy
from ...widgets import glossary, link_notices, page_links, placement

PASTED = "own_config"
CODEC = Codec((page_links.MODEL_TYPE,), version="")
FIRST = "llama"
LOOK = """import normviz

print(normviz.inspect(model))
# the same model with its norms elsewhere
peri = normviz.move(model, "peri")"""
WATCH = """import normviz

watch = normviz.watch(model, optimizer)
# and then your loop, as it is"""
LETTERS = (
    "N is a norm, A attention, F an FFN, which works on each token by itself. M is another part that mixes "
    "tokens, such as a convolution or a state space; B is a part that could not be told. After a bar stands "
    "what is inside."
)
WHAT_HAPPENS = (
    "The model is built on this machine without weights, in a process with bounded time and memory. One "
    "small forward pass is followed. No code and no other model that the file names is loaded, and the "
    "text is written nowhere."
)
ELSEWHERE = (
    "This server is shared and takes no configuration of yours. Where you install NormViz, "
    "`normviz inspect config.json` and this page do."
)
SHOWS = (
    "Where the norms of a model sit, which ones they are, the known trouble of that placement, and who else "
    "has it. Nothing is trained here; the links below each stack lead to what was measured."
)
DEFAULTS = " All sizes are the defaults of this type's configuration."
PASTE = " For yours paste your config.json above."
USERS = 12
"""Models with the same placement that are named."""


def page() -> None:
    """The page, from top to bottom."""
    with st.container(key="head"):
        st.markdown("# Your model :small[:gray[Which placement does it have?]]")
    st.markdown(SHOWS)
    link_notices.unknown_parameters(CODEC)
    glossary.line("placement", "norm", "stream", "branch", "final", "qk")
    answer = _asked()
    if answer is not None:
        _show(answer)
    _lines()


def _asked() -> Anatomy | None:
    """The anatomy that the visitor asked for: of a model type, or of a pasted configuration."""
    with st.container(key="own_controls"):
        kinds = sorted(shipped.anatomies())
        given = CODEC.given(address.params()).get(page_links.MODEL_TYPE)
        if given is not None and given not in kinds and st.session_state["arrived"]:
            words = (
                f"The link gives {page_links.MODEL_TYPE} {cut(given)}, which is no model type here"
            )
            st.info(literal(f"{words}: not used.{meant(given, kinds)}"))
        if "own_type" not in st.session_state:
            st.session_state["own_type"] = given if given in kinds else FIRST
        kind = st.selectbox(
            "Model type", kinds, key="own_type", width=400,
            help="Model types of the library transformers, with the defaults of each configuration.",
            on_change=_clear,
        )  # fmt: skip
        text = None
        if policy().own_models:
            with (
                st.expander("Or paste a config.json", icon=":material/content_paste:"),
                st.form("own_form", border=False),
            ):
                text = st.text_area(
                    "config.json", key=PASTED, height=200, max_chars=MAX_CHARACTERS,
                    placeholder='{"model_type": "qwen3", "num_hidden_layers": 28, ...}',
                )  # fmt: skip
                st.form_submit_button(
                    "Show its placement", type="primary", key="own_show", on_click=_leave_type
                )
                st.caption(WHAT_HAPPENS)
        else:
            st.caption(ELSEWHERE)
    if text and text.strip():
        address.show({})
        return _pasted(text)
    address.show(CODEC.params({page_links.MODEL_TYPE: kind} if kind else {}))
    known = shipped.anatomies().get(kind or "")
    if isinstance(known, str):
        named = "" if known.startswith(f"{kind} ") else f"{kind} could not be followed: "
        st.warning(literal(named + known))
        return None
    return known


def _clear() -> None:
    """Show the model type that was chosen, not the text that was pasted before."""
    st.session_state[PASTED] = ""


def _leave_type() -> None:
    """Show the text that was pasted, and no model type beside it."""
    if _is_pasted():
        st.session_state["own_type"] = None


def _is_pasted() -> bool:
    """Whether a text is shown, not the model type that was chosen."""
    return bool(st.session_state.get(PASTED, "").strip())


def _pasted(text: str) -> Anatomy | None:
    try:
        with st.spinner("Following a forward pass. This takes some seconds."):
            return inspect_pasted(text.strip(), home())
    except NotInspected as error:
        st.error(literal(capital(str(error))))
        return None


def _show(anatomy: Anatomy) -> None:
    """The anatomy of each stack, then the known troubles and what lint says."""
    st.markdown(f"## {literal(anatomy.model)}")
    sizes = "" if _is_pasted() else DEFAULTS + PASTE * policy().own_models
    st.caption(
        f"{anatomy.parameters:,} parameters.{sizes} Found by the flow of data in one forward pass, and by "
        "what each norm answers to random inputs. No name was trusted."
    )
    for stack in anatomy.stacks:
        _stack(stack)
    st.markdown("### What to look at")
    lines = [
        f"Known trouble of {literal(stack.placement_words)}: {literal(stack.trouble)}"
        for stack in anatomy.stacks
        if stack.trouble
    ]
    mark = ":material/warning: " if anatomy.lint else ""
    lines += [mark + literal(word) for word in anatomy.lint_words]
    st.markdown("\n".join(f"* {line}" for line in dict.fromkeys(lines)))
    if any(stack.placement is None for stack in anatomy.stacks):
        st.caption("Of a placement that was not told, less is known to go wrong.")


def _stack(stack: StackFound) -> None:
    """One stack of blocks."""
    width = f", width {stack.width:,}" if stack.width else ""
    kinds = literal(", ".join(stack.kinds))
    st.markdown(f"### {stack.blocks} blocks of {kinds} at `{stack.path}`{width}")
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("\n".join(f"* **{title}**: {fact}" for title, fact in _facts(stack)))
        if stack.formulas:
            st.caption(LETTERS)
    config = _config(stack)
    with right:
        if config is None:
            why = stack.why or "the catalogue has no diagram for it"
            st.info(f"The placement was not told: {literal(why)}.")
        else:
            placement.diagram(config)
            placement.formulas(config)
    if config is not None:
        _ways(stack, config)
        _others(stack)


def _facts(stack: StackFound) -> list[tuple[str, str]]:
    alike = "; ".join(SCHEMES.label(key) for key in stack.alike)
    same = f" The same forward pass as {literal(alike)}." if alike else ""
    rows = [("Placement", f"{literal(stack.placement_words)}.{same}")]
    rows += [("Computes", ", ".join(f"`{formula}`" for formula in stack.formulas))] * bool(
        stack.formulas
    )
    rows += [
        ("Norm", f"{literal(n.label)}: {literal(n.words)}, {n.count} in the blocks")
        for n in stack.norms
    ]
    rows.append(("Final norm", f"`{stack.final_norm}`" if stack.final_norm else stack.final_words))
    rows.append(("QK-norm", stack.qk_words))
    rows.append(("Embedding norm", f"`{stack.embed_norm}`" if stack.embed_norm else "no"))
    rows.append(("Scales", literal("; ".join(stack.scales)) or "none"))
    rows += [("Not followed", literal(note)) for note in stack.notes]
    return rows


def _config(stack: StackFound) -> RunConfig | None:
    """The nearest setting of this product, for the diagram and the formula."""
    if stack.placement is None:
        return None
    config = RunConfig(scheme=stack.placement)
    norm = (
        stack.norm_key
        if stack.norm_key != "none" and SCHEMES[stack.placement].norm is None
        else None
    )
    for name, value in (("depth", stack.blocks), ("norm", norm), ("qk_norm", stack.qk_norm)):
        if value not in (None, "none"):
            with suppress(ConfigError):
                config = config.replace(**{name: value})
    return config


def _ways(stack: StackFound, config: RunConfig) -> None:
    """Where to go on with this stack: its anatomy, Choose, a map, and a duel of its depth."""
    label, most = SCHEMES.label(config.scheme), int(DEPTHS.high)
    other = "post" if config.scheme == "pre" else "pre"
    with st.container(horizontal=True, gap="small"):
        page_links.anatomy([config.replace(depth=min(config.depth, most))], label)
        kind = st.session_state["own_type"]
        answers = Answers(depth=nearest(stack.blocks))
        if not _is_pasted() and kind in options("model"):
            answers = replace(answers, start="existing", model=kind)
        page_links.to(
            "choose", f"Which placement? Measured at {measured_at(answers)} blocks with LayerNorm",
            as_params(answers), ":material/help:",
        )  # fmt: skip
        stored = map_of(config)
        page_links.to(
            "maps", f"Where {label} trains, with {norms(stored.grid.base)}", stored.params(),
            ":material/grid_on:",
        )  # fmt: skip
        with suppress(ConfigError, SweepError):  # of a stack that is too deep for a page
            own = beside(config)
            page_links.to(
                "maps", f"Fill a map of {config.depth} blocks with {norms(config)}", own.params(),
                ":material/grid_on:",
            )  # fmt: skip
        lanes = as_lanes([config, config.replace(scheme=other)])
        page_links.to(
            "duel", f"Duel at {config.depth} blocks: {label} against {SCHEMES.label(other)}", lanes,
            ":material/arrow_forward:",
        )  # fmt: skip
    st.caption(f"The duel has the depth, norm and QK-norm of this stack, at width {config.width}.")


def _others(stack: StackFound) -> None:
    """Who else has this placement, by the census."""
    same = dict.fromkeys(row.model for row in census().all if row.placement == stack.placement)
    if not same:
        st.caption("No model of the census has this placement.")
        return
    named = literal(", ".join([*same][:USERS]))
    more = f" and {len(same) - USERS} more" if len(same) > USERS else ""
    every = len({row.model for row in census().all})
    st.caption(
        f"Of {every} model types of the census, for language, vision, audio and images with text, "
        f"{len(same)} have this placement in some stack of blocks: {named}{more}."
    )
    page_links.models()


def _lines() -> None:
    """The lines to copy."""
    st.markdown("## In your own code")
    st.markdown(
        "`normviz inspect train.py:build` prints what is above for the model that the function `build` of "
        "a file makes. In Python:"
    )
    st.code(LOOK, language="python")
    st.markdown("While it trains, in your own loop, with the charts of this product:")
    st.code(WATCH, language="python")
    st.caption(
        "While it trains, the run is a row of the page History of NormViz on your own machine, and can be a "
        "lane of the Duel page there. A shared server takes no runs of own models."
    )
