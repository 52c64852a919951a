"""`normviz export` writes a finished duel as tables, configs, scripts or a replay page.

`normviz export-site` writes replays as a folder that any static host serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

import typer

from ..catalog import PROBES
from ..config import seeded, seeds_of
from ..export import archive, figure, replay, script, write_configs
from ..export.figure import SIZE, WIDTH
from ..home import expanded
from ..lessons.presets import PRESETS
from ..limits import MAX_SWEEP_SEEDS
from ..observed import KEY, Observed, Settings, configured
from ..runs import Recording, Run, empty
from ..runs.frames import Frames
from ..runs.lane import LETTERS, Lane
from ..runs.names import in_file
from ..runs.shipped import adopt
from ..runs.store import Store, StoreError
from . import main
from .errors import complain
from .places import is_folder, stored
from .run import follow, read_lanes, read_words

Form = Literal["csv", "parquet", "json", "py", "html", "pdf", "svg"]
FORMS: tuple[Form, ...] = get_args(Form)
SUFFIX: dict[Form, str] = {
    "csv": ".zip", "parquet": ".zip", "json": ".json", "py": ".py", "html": ".html", "pdf": ".pdf",
    "svg": ".svg",
}  # fmt: skip
NOT_THEIRS = {
    "py": "a script would need that model, its data and its loop, which are yours",
    "json": "it has no settings that `normviz run --config` could train",
}
"""Why a run that was observed has no file of a form."""
Named = tuple[str, Settings]


@main.command()
def export(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN, LINK or preset] [key=value ...]", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder, or file, to write to")] = Path("."),
    form: Annotated[
        str | None,
        typer.Option("--as", help="csv, parquet (both in a zip), json, py, html, pdf or svg"),
    ] = None,
    lane: Annotated[int | None, typer.Option(help="Only this lane")] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=MAX_SWEEP_SEEDS, help="Each lane with this many seeds")
    ] = 1,
    probe: Annotated[str, typer.Option(help="Quantity of a figure (pdf, svg)")] = "grad_block",
    width: Annotated[float, typer.Option(min=20, max=1000, help="Width of a figure in mm")] = WIDTH,
    font: Annotated[
        float, typer.Option(min=3, max=40, help="Size of the words of a figure in points")
    ] = SIZE,
    data: Annotated[Path | None, typer.Option(help="Folder that keeps the runs")] = None,
) -> None:
    """Export stored runs: tables, settings, a script that repeats them, a replay in one file, or a figure
    of loss and layers for a paper.

    A run that is not stored is trained first if its numbers are needed.
    """
    try:
        chosen = read_form(form, out)
        if chosen == "py" and seeds > 1:
            raise ValueError(
                f"--seeds is {seeds}, but a script repeats one run: choose its seeds with init_seed= and "
                "data_seed="
            )
        if probe not in PROBES:
            raise ValueError(PROBES.unknown(probe))
        store = stored(data)
        adopt(store)
        named, duel = read_duel(words or [], store)
        duel = read_lane(duel, lane)
        paths = targets(out, chosen, f"normviz-{stem(named, duel, lane, seeds)}", duel)
        lanes = [of_seeds(name, config, seeds, store, chosen) for name, config in duel]
        files = contents(lanes, chosen, probe, width, font)
        for path, content in zip(paths, files, strict=True):
            path.write_bytes(content)
            typer.echo(path)
    except (ValueError, StoreError) as error:
        complain(error)
    except OSError as error:
        complain(f"{str(error.filename)!r} can't be written: {error.strerror}")


def read_form(form: str | None, out: Path) -> Form:
    """The format: from --as, else from the file's suffix, else CSV."""
    if form is None:
        forms = {suffix: form for form, suffix in SUFFIX.items() if suffix != ".zip"}
        return forms.get(out.suffix, "csv")
    if form not in FORMS:
        raise ValueError(f"--as is {form!r}, allowed is one of {', '.join(FORMS)}")
    return form


def read_duel(words: Sequence[str], store: Store) -> tuple[str, list[Named]]:
    """The name of an unchanged preset, or "", and the lanes with their letters.

    Raises ValueError with a sentence.
    """
    names, changes = read_words(words)
    name = names[0] if names else "hero"
    if KEY.fullmatch(name):
        run = store.latest(name)
        if run is None:
            raise ValueError(
                f"the store {store.folder} has no run {name}: name a link or a preset "
                f"({', '.join(PRESETS.keys())}), or another folder with --data"
            )
        lanes = (run.config,)
    else:
        lanes = read_lanes(name)
    if changes:  # which may make lanes alike: that is one
        lanes = [*dict.fromkeys(configured(config).replace(**changes) for config in lanes)]
    preset = name if name in PRESETS and not changes else ""
    return preset, list(zip(LETTERS, lanes, strict=False))


def read_lane(duel: list[Named], lane: int | None) -> list[Named]:
    """All lanes, or the one of --lane."""
    if lane is None:
        return duel
    if not 1 <= lane <= len(duel):
        raise ValueError(f"lane is {lane}, allowed is a whole number from 1 to {len(duel)}")
    return duel[lane - 1 : lane]


def stem(preset: str, duel: Sequence[Named], lane: int | None, seeds: int = 1) -> str:
    """The stem of file names: the preset and the selected lane, or the first run's key, and the number
    of seeds."""
    (letter, first), *_ = duel
    several = f"-{seeds}-seeds" if seeds > 1 else ""
    if not preset:
        return f"{first.key}{several}"
    return f"{preset if lane is None else f'{preset}-{letter}'}{several}"


def targets(out: Path, form: Form, start: str, duel: Sequence[Named]) -> list[Path]:
    """The files to write: one, or for scripts one per lane. Raises ValueError with a sentence."""
    suffix = SUFFIX[form]
    if is_folder(out):
        if form != "py":
            kind = f"-{form}" if suffix == ".zip" else ""
            return [out / f"{start}{kind}{suffix}"]
        return [out / f"{start}-{name}-{in_file(config.scheme)}.py" for name, config in duel]
    if out.suffix != suffix:
        raise ValueError(
            f"--out is {str(out)!r}, allowed for {form} is a folder that exists or a name ending in "
            f"{suffix}"
        )
    if not is_folder(out.parent):
        raise ValueError(f"--out names the folder {str(out.parent)!r}, which does not exist")
    if form == "py" and len(duel) > 1:
        raise ValueError(
            f"--out is {str(out)!r}, but a script holds one lane and there are {len(duel)}: give a "
            "folder, or choose one with --lane"
        )
    return [out]


def of_seeds(name: str, config: Settings, seeds: int, store: Store, form: Form) -> Lane:
    """A lane with its own seed and the next ones. Raises ConfigError if there is no next seed, and
    ValueError for what an observed run does not have."""
    if isinstance(config, Observed) and (why := NOT_THEIRS.get(form)):
        raise ValueError(
            f"{config.label} was observed, and can be taken as csv, parquet or html, not as {form}: {why}"
        )
    single = isinstance(config, Observed) and seeds == 1
    each = [config] if single else seeded(configured(config), seeds)
    recordings = tuple(find(name, settings, store, form) for settings in each)
    return Lane(name, recordings[0].config, recordings)


def find(name: str, config: Settings, store: Store, form: Form) -> Recording:
    """What a lane's run recorded; it is trained here if its numbers are needed and missing."""
    run = store.latest(config.key)
    recording = None if run is None else Frames(store).recording(run)
    if run is not None and recording is not None and len(recording.steps):
        if not run.is_done:
            is_first = isinstance(config, Observed) or not (config.init_seed or config.data_seed)
            seed = "" if is_first else f" ({seeds_of(configured(config))})"
            typer.echo(
                f"normviz: lane {name}{seed} is not finished: {why_unfinished(run, recording)}",
                err=True,
            )
        return recording
    if form in ("json", "py"):
        return empty(config, "queued")
    if isinstance(config, Observed):
        raise ValueError(
            f"{config.label} has no steps yet: it was observed, and can't be trained here"
        )
    result = follow(config, (), threads=1)
    if result.status == "stopped":
        raise typer.Exit(130)
    return result


def why_unfinished(run: Run, recording: Recording) -> str:
    """How far an unfinished run is."""
    n = len(recording.steps)
    return (
        f"{run.status}, {n} steps"
        if run.is_observed
        else f"{run.status}, {n} of {run.config.steps} steps"
    )


def contents(
    lanes: Sequence[Lane], form: Form, probe: str, width: float, size: float
) -> list[bytes]:
    """The bytes of each file; `probe`, `width` in mm and `size` in points are of a figure."""
    if form in ("pdf", "svg"):
        return [figure(lanes, form, probe, width, size)]
    if form == "py":
        return [script(lane).encode() for lane in lanes]
    if form == "json":
        return [write_configs(lanes).encode()]
    if form == "html":
        return [replay(lanes).encode()]
    return [archive(lanes, form)]


# `normviz export-site`.


@main.command("export-site")
def export_site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder")],
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN ...]", help="Numbers or keys of runs; A,B is one duel of both"
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the index page")] = "NormViz",
    url: Annotated[str, typer.Option(help="Where DIR will be served, for previews of links")] = "",
    live: Annotated[
        bool, typer.Option("--live", help="Add live.html, which trains in the visitor's browser")
    ] = False,
    one_file: Annotated[
        bool, typer.Option("--one-file", help="Put all that live.html needs into it (with --live)")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder that keeps the runs")] = None,
) -> None:
    """Write the presets, the tour and chosen runs as pages that replay without this server.

    No file in DIR is overwritten. The pages use relative links and load nothing from another host.
    """
    import torch

    from ..browser.site import chosen_duels, shipped_duels, site, write

    torch.set_num_threads(
        1
    )  # thousands of small tensors: with more threads it takes three times as long
    try:
        if one_file and not live:
            raise ValueError(
                "--one-file needs --live: it puts all that live.html needs into that file"
            )
        address = read_url(url)
        check_title(title)
        folder = expanded(folder)
        kind = "" if not live else "file" if one_file else "folder"
        store = stored(data)
        adopt(store)
        duels = [*shipped_duels(store), *chosen_duels(store, runs or [])]
        for name in write(folder, site(duels, title, address, kind)):
            if name.endswith(".html"):
                typer.echo(folder / name)
    except (ValueError, StoreError) as error:
        complain(error)
    except OSError as error:
        complain(f"{str(error.filename)!r} can't be written: {error.strerror}")


def read_url(url: str) -> str:
    """The address of the folder, with a slash at its end. Raises ValueError with a sentence."""
    if not url:
        return ""
    if not _is_address(url):
        raise ValueError(
            f"--url is {url[:80]!r}, allowed is an address such as https://host/folder/"
        )
    return url.rstrip("/") + "/"


def _is_address(url: str) -> bool:
    try:
        url.encode()
        parts = urlsplit(url)
    except ValueError:  # bytes that are not text, or an incomplete IPv6 address
        return False
    known = parts.scheme in ("http", "https") and bool(parts.netloc)
    return known and not parts.query and not parts.fragment


def check_title(title: str) -> None:
    """Raises ValueError with a sentence for a title that a page can't contain."""
    try:
        title.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"--title is {title[:80]!r}, which holds bytes that are not text: allowed is text in UTF-8"
        ) from None
