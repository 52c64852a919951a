"""The Catalogue page: all placements with the anatomy of one or two, all norms, and what models use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pandas as pd
import streamlit as st

from normviz.catalog import CELLS, FAMILIES, NORMS, SCHEMES, TASKS
from normviz.catalog.models import LANGUAGE, OTHERS, Model, census
from normviz.catalog.norm import Learned, Norm
from normviz.catalog.registry import meant
from normviz.catalog.scheme import Scheme
from normviz.catalog.setting import FORMULA
from normviz.config import ConfigError, RunConfig
from normviz.lessons.anatomy import formula, plain
from normviz.links import as_params, cut

from ...session import address
from ...session.backend import shared
from ...session.markdown import literal, source
from ...widgets import glossary, link_notices, page_links, placement
from . import anatomy, measured, state
from . import census as census_charts
from .state import TABLE

TABS = {
    "placements": "Placements", "norms": "Norms", "models": "Models", "nets": "Other nets",
}  # fmt: skip
"""The tabs, by the word that a link has for each."""
FIRST, TAB = "placements", "catalogue_tab"
FEW_ROWS, MANY_ROWS = 4, 10
DEPTH = RunConfig().depth
WIDE = 330
COLUMNS = {name: st.column_config.Column(width=WIDE) for name in ("Formula", "Remarks")}


def page() -> None:
    """The page, from top to bottom."""
    with st.container(key="head"):
        models = len({model.model for model in census().models})
        st.markdown(
            f"# Catalogue: {len(SCHEMES)} placements, {len(NORMS)} norms, {models} language models"
        )
    _arrive()
    link_notices.show(state.anatomy(), "Below is what this page opens with.", state.open_link)
    words = st.text_input(
        "Search", key="search", placeholder="sandwich, Gemma, arXiv:2002.04745, tanh ...",
        label_visibility="collapsed",
    )  # fmt: skip
    tabs = st.tabs([*TABS.values()], key=TAB, on_change="rerun")
    for name, tab, show in zip(TABS, tabs, (_placements, _norms, _models, _nets), strict=True):
        if tab.open:
            if name != FIRST:
                address.show({TABLE: name})
            with tab:
                show(words)
    glossary.line(
        "placement", "norm", "pre", "post", "stream", "branch", "final", "qk", "gamma", "beta", "init",
        "depth", "rms", "gradient", "cosine",
    )  # fmt: skip


def _arrive() -> None:
    """Open the tab that a link names, which need not be the one that was open."""
    if not st.session_state["arrived"]:
        return
    asked = next(iter(address.params().get(TABLE, ())), FIRST)
    if asked not in TABS:
        allowed = f"The link gives {TABLE} {cut(asked)}, allowed is one of {', '.join(TABS)}."
        st.info(literal(allowed + meant(asked[:40], TABS)))
    st.session_state[TAB] = TABS.get(asked, TABS[FIRST])


def _placements(words: str) -> None:
    """All placements, of which a row sets the first one, and the anatomy of one or two."""
    backend, page_anatomy = shared(), state.anatomy()
    # First, so that workers measure while the page renders.
    runs = measured.queued_runs(page_anatomy, backend)
    measured.leave(page_anatomy, backend, runs)
    if not (page_anatomy.link and page_anatomy.link.problems):
        address.show({} if page_anatomy.is_usual else as_params(page_anatomy.lanes))
    label = f"All {len(SCHEMES)} placements: choose a row for its anatomy"
    with st.expander(label, expanded=bool(words) or not page_anatomy.named):
        _choose(words, page_anatomy.lanes[0].scheme)
    anatomy.show(page_anatomy, runs)


def _choose(words: str, shown: str) -> None:
    """The table of the placements. The row of the one that is `shown` is marked; another one replaces it."""
    rows = _matches([_scheme(scheme) for scheme in SCHEMES], words)
    if words:
        st.caption(f"{len(rows)} of {len(SCHEMES)}.")
    if not rows:
        return
    keys, key = [row["Key"] for row in rows], f"schemes {words} {shown}"
    st.dataframe(
        pd.DataFrame(rows), key=key, hide_index=True, height=_height(rows, FEW_ROWS),
        on_select=lambda: state.take_row(keys, key), selection_mode="single-row",
        selection_default={"selection": {"rows": [keys.index(shown)] if shown in keys else []}},
        column_config=COLUMNS,
    )  # fmt: skip


def _norms(words: str) -> None:
    if (key := _chosen([_norm(norm) for norm in NORMS], words, "norms")) is not None:
        _about_norm(NORMS[key])


def _models(words: str) -> None:
    adoption = census()
    st.caption(literal(adoption.origin))
    census_charts.show(adoption)
    with st.expander("All counts"):
        st.markdown(literal(adoption.summary))
    named = {_name(model): model for model in adoption.of(_kinds())}
    rows = [_model(name, model) for name, model in named.items()]
    if (key := _chosen(rows, words, "models", "its placement's anatomy")) is not None:
        _about_model(named[key])


def _nets(words: str) -> None:
    st.caption(
        "Where norms sit outside of decoders. A residual stack has the placements of a decoder; a "
        "recurrent net has places of its own. A duel of any of them is one setting away: *family*."
    )
    if (key := _chosen(_net_rows(), words, "nets", "its formula and a duel")) is not None:
        _about_net(*key.split())


def _net_rows() -> list[dict[str, str]]:
    """A row for each residual family, and one for each placement of a recurrent one."""
    rows = []
    for family in FAMILIES:
        cells = CELLS if family.is_recurrent else ()
        about = {
            "Net": family.label, "Where the norm sits": "as in a decoder: see Placements",
            "Reads": ", ".join(TASKS.label(t) for t in family.tasks),
        }  # fmt: skip
        seen = {"Checked against": family.oracle or "see Placements", "Source": family.source}
        rows += [] if cells else [{**about, "Formula": "", **seen, "Key": family.key}]
        rows += [
            {
                **about, **seen, "Where the norm sits": cell.label,
                "Formula": plain(cell.formula(family.key)),
                "Key": f"{family.key} {cell.key}",
            }
            for cell in cells
        ]  # fmt: skip
    return rows


def _about_net(key: str, scheme: str = "") -> None:
    """A family, or one of its placements, with a duel."""
    family, config, peer = FAMILIES[key], RunConfig(family=key), "post"
    with st.container(border=True):
        st.markdown(f"## {literal(family.label)}")
        st.markdown(literal(family.sentence))
        if scheme:
            cell, config = CELLS[scheme], config.replace(scheme=scheme)
            peer = "cell_none" if scheme == "pre_activation" else "pre_activation"
            st.markdown(literal(f"{cell.label}. {cell.sentence} {cell.trouble}"))
            placement.formulas(config)
            placement.gradients(config)
            st.markdown(source(cell.source))
        st.markdown(source(family.source))
        params = as_params([config, config.replace(scheme=peer)])
        page_links.to("duel", "Open as a duel", params, ":material/arrow_forward:")


def _kinds() -> tuple[str, ...]:
    """The kinds of models that the table lists: those of language, or another one."""
    chosen = st.segmented_control(
        "Models of", ("language", *OTHERS), default="language", required=True, key="census_of",
    )  # fmt: skip
    return LANGUAGE if chosen == "language" else (chosen,)


def _chosen(
    rows: list[dict[str, str]], words: str, key: str, gives: str = "its formula and its anatomy"
) -> str | None:
    """A table of the rows that contain the words. Returns the chosen row's key; None without rows."""
    matches = _matches(rows, words)
    st.caption(f"{len(matches)} of {len(rows)}. Choose a row for {gives}.")
    if not matches:
        return None
    table = pd.DataFrame(matches)
    seen = st.dataframe(
        table, key=f"{key} {words}", hide_index=True, height=_height(matches, MANY_ROWS),
        on_select="rerun", selection_mode="single-row-required",
        column_config=COLUMNS | ({"Key": None} if key == "models" else {}),
    )  # fmt: skip
    row = next(iter(seen.selection.rows), 0)
    return matches[min(row, len(matches) - 1)]["Key"]


def _matches(rows: list[dict[str, str]], words: str) -> list[dict[str, str]]:
    """The rows that contain all words."""
    wanted = words.casefold().split()
    return [r for r in rows if all(word in " ".join(r.values()).casefold() for word in wanted)]


def _height(rows: Sequence[object], most: int) -> int:
    """Pixels of a table that shows up to `most` rows and the upper edge of the next one."""
    return min(36 * len(rows) + 38, 36 * most + 52)


def _scheme(scheme: Scheme) -> dict[str, str]:
    lines = formula(scheme.key, DEPTH)
    parts = [
        f"{where}: {plain(latex)}" if where and len(lines) > 1 else plain(latex)
        for where, latex in lines
    ]
    return {
        "Placement": scheme.label,
        "Formula": "; ".join(parts),
        "Family": scheme.family,
        "Final norm": "yes" if scheme.final_norm else "no",
        "Used by": scheme.used_by,
        "Checked against": scheme.oracle or FORMULA,
        "Source": scheme.source,
        "Key": scheme.key,
    }


def _norm(norm: Norm) -> dict[str, str]:
    return {
        "Norm": norm.label,
        "Formula": plain(norm.formula),
        "Learns": ", ".join(map(_start, norm.learns)) or "nothing",
        "Warning": norm.warning,
        "Source": norm.source,
        "Checked against": norm.oracle or FORMULA,
        "Key": norm.key,
    }


def _start(learned: Learned) -> str:
    """A learned parameter of a norm, and where it starts."""
    return f"{plain(learned.symbol)} {f'from {learned.start}' if learned.rank == 0 else 'drawn'}"


def _name(model: Model) -> str:
    """A unique name: a model whose encoder and decoder differ has two rows."""
    return f"{model.model} {model.layer}"


def _model(name: str, model: Model) -> dict[str, str]:
    placement, norm, final, qk, embed = model.words
    return {
        "Model": model.model,
        "Kind": model.kind,
        "Placement": placement,
        "Norm": norm,
        "Final norm": final,
        "QK-norm": qk,
        "Embedding norm": embed,
        "Year": str(model.year or ""),
        "Remarks": model.remarks,
        "Block": model.layer,
        "Told by": model.told_words,
        "Key": name,
    }


def _about_model(model: Model) -> None:
    placement, norm, final, qk, embed = map(literal, model.words)
    with st.container(border=True):
        st.markdown(
            f"**{literal(model.model)}**: placement {placement}, norm {norm}, final norm {final}, "
            f"QK-norm {qk}, norm on the embedding {embed}."
        )
        told = f"Told by {model.told_words}, in transformers {model.transformers}."
        st.caption(literal(" ".join(filter(None, (told, model.remarks)))))
        if model.placement:
            page_links.anatomy([_config(model)], SCHEMES.label(model.placement))


def _config(model: Model) -> RunConfig:
    """The nearest config that the anatomy can show: a norm that does not fit is left out."""
    assert model.placement is not None
    config = RunConfig(scheme=model.placement)
    for name, value in (("norm", model.norm), ("qk_norm", model.qk_norm)):
        with suppress(ConfigError):
            config = config.replace(**{name: value})
    return config


def _about_norm(norm: Norm) -> None:
    with st.container(border=True):
        st.markdown(f"## {literal(norm.label)}")
        st.markdown(literal(" ".join(filter(None, (norm.sentence, norm.warning)))))
        st.latex(norm.formula)
        st.markdown(source(norm.source))
        page_links.anatomy([RunConfig(norm=norm.key)], f"Pre-LN with {norm.label}")
