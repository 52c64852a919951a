"""The pages: their names in the navigation, their paths, and what previews of their links say."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Scope

NAME = "NormViz"


@dataclass(frozen=True)
class AboutPage:
    """A page: its name, its path, one sentence about it, and the menu of the navigation in which it stands;
    without one it stands in the navigation itself. `within`: only another page leads to it."""

    name: str
    path: str
    words: str
    menu: str = ""
    within: bool = False


DUEL = AboutPage(
    "Duel", "duel",
    "What does it do to a transformer where you put the norm? Train small transformers side by side in "
    "the browser, and watch loss and gradients of every layer.",
)  # fmt: skip
PAGES = {
    page.path: page
    for page in (
        DUEL,
        AboutPage(
            "Maps", "maps",
            "At which depths and learning rates does each norm placement train? Maps of stored runs.",
        ),
        AboutPage(
            "Claims", "claims",
            "What papers say about norm placement, each claim with an experiment and its verdict.",
        ),
        AboutPage(
            "Choose", "choose",
            "Which norm placement should I use? Placements for a depth, with what was measured, what papers "
            "claim, which models use them, and what a norm costs.",
        ),
        AboutPage(
            "Tour", "tour",
            "What a norm's place does, in eleven short steps: each sets a duel and says what to look at.",
            "Learn",
        ),
        AboutPage(
            "Assignments", "assignments",
            "Experiments to predict, train and explain, with a file to hand in; and code with a bug "
            "about norms to find.",
            "Learn",
        ),
        AboutPage(
            "Catalogue", "catalogue",
            "All norm placements and norms: diagram, formula, gradient path, code, numbers measured before "
            "the first training step, and what real models use.",
            "Learn",
        ),
        AboutPage(
            "By hand", "by-hand",
            "LayerNorm, RMSNorm and BatchNorm worked out step by step on a table of numbers.",
            "Learn",
        ),
        AboutPage(
            "Your model", "own-model",
            "Which norm placement does your model have? Choose a model type or paste a config.json.",
            within=True,
        ),
        AboutPage("History", "runs", "All runs that this server stores, with filters and a search."),
    )
}  # fmt: skip


def tab_title(title: str) -> str:
    """What a browser's tab shows for a page or a duel."""
    return f"{title} · {NAME}"


def asked(scope: Scope) -> str | None:
    """The path of the page whose HTML a request is for, without slashes; None for anything else."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return None
    root = scope.get("root_path", "")
    name = scope["path"].removeprefix(root).strip("/").rpartition("/")[2]
    return name if name in ("", *PAGES) else None
