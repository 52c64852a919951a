"""A button that copies a link to the page, or the code that embeds it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from streamlit.components.v2 import component

_COPY = component(
    "copy",
    html='<button type="button"></button><span role="status"></span>',
    css="""
      button { font: inherit; font-size: .875rem; color: var(--st-text-color);
        background: var(--st-background-color);
        border: 1px solid var(--st-border-color); border-radius: .5rem; padding: .35rem .75rem;
        cursor: pointer; min-height: 2.5rem; }
      button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
      button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
      span { margin-left: .6rem; font-size: .9rem; }
      span:empty { display: none; }
    """,
    js="""
      export default function ({ data, parentElement, setTriggerValue }) {
        const button = parentElement.querySelector("button");
        const status = parentElement.querySelector("span");
        const url = (more) => {
          // The charts' cursor is the browser's: a link holds it as it is at the click.
          const query = new URLSearchParams(data.query);
          const cursor = document.querySelector(".nv-root")?.player?.cursor.words;
          if (cursor) for (const name of ["at", "layer"]) query.delete(name);
          for (const [name, value] of Object.entries(cursor ?? {})) query.set(name, value);
          const text = query.toString().replace(/%(2C|3A|3B)/g, (code) => decodeURIComponent(code));
          return location.origin + location.pathname + "?" + text + more;
        };
        const frame = () => `<iframe src="${url("&embed=true")}" title="${data.title}" width="100%" `
          + `height="900" style="border:0" loading="lazy"></iframe>\n`
          + `<p><a href="${url("").replaceAll("&", "&amp;")}">${data.title}</a></p>`;
        button.textContent = data.label;
        button.dataset.link = url("");
        button.onclick = async () => {
          try {
            await navigator.clipboard.writeText(data.title ? frame() : url(""));
            status.textContent = "Copied";
          } catch { status.textContent = "The browser forbids it: copy the link shown below"; }
          setTriggerValue("copied", true);
          setTimeout(() => { status.textContent = ""; }, 4000);
        };
      }
    """,
)


def copy_link(
    key: str,
    query: str,
    label: str = "Copy link",
    title: str = "",
    copied: Callable[[], None] = lambda: None,
) -> None:
    """The button for the page's address with this query, or with a title for the code that embeds it. The
    browser calls `copied` after a click."""
    _COPY(
        key=key, data={"query": query, "label": label, "title": escape(title)}, height="content",
        width="content", on_copied_change=copied,
    )  # fmt: skip
