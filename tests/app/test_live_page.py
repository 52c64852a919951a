"""The page that trains in the visitor's browser, as the app serves and offers it."""

from __future__ import annotations

from pathlib import Path

import pytest
from normviz.app.asgi.live_page import LIVE, address, live_file
from page_kit import Open, checked
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from normviz import RunConfig

OFFER = "Train on this device"


def put(folder: Path, *names: str) -> None:
    (folder / "live").mkdir()
    for name in names:
        (folder / "live" / name).write_text(f"this is {name}")


def offers(page: Open, query: str) -> list[str]:
    at = page(query)
    assert not any(OFFER in caption.value for caption in at.caption)  # nothing waits yet
    checked(at.button(key="train").click().run())
    return [caption.value for caption in at.caption if OFFER in caption.value]


@pytest.mark.slow
def test_a_waiting_duel_is_offered_where_the_page_has_its_models(page: Open, folder: Path) -> None:
    assert offers(page, "v=1&scheme=pre,post&steps=21") == []
    put(folder, "live.html", "model-pre-layernorm.bin", "model-post-layernorm.bin")
    (found,) = offers(page, "v=1&scheme=pre,post&steps=22")
    assert f"(/{LIVE}/live.html?v=1&scheme=pre,post&steps=22)" in found
    assert offers(page, "v=1&scheme=pre,peri&steps=23") == []  # no model of Peri-LN
    assert offers(page, "v=1&scheme=pre,post&steps=24&width=16") == []


def test_settings_that_the_page_lacks_have_no_address(tmp_path: Path) -> None:
    put(tmp_path, "live.html", "model-pre-layernorm.bin", "model-pre-layernorm-prose.bin")
    hero, prose = RunConfig(), RunConfig(task="prose")
    assert address([hero, hero.replace(lr=0.01)], tmp_path) is not None
    assert address([prose, prose], tmp_path) is not None
    for lanes in (
        [hero], [hero] * 3, [hero, hero.replace(depth=13)], [hero, hero.replace(data_seed=1)],
        [hero, hero.replace(steps=100)], [hero, hero.replace(optimizer="sgd")],
        [hero, prose], [prose, prose.replace(dropout=0.1)], [hero.replace(task="masked")] * 2,
    ):  # fmt: skip
        assert address(lanes, tmp_path) is None, lanes


def test_the_server_gives_the_folders_files_and_no_others(folder: Path) -> None:
    put(folder, "live.html", "notes.txt")
    (folder / "secret.html").write_text("secret")
    with TestClient(Starlette(routes=[Route(f"/{LIVE}/{{name}}", live_file)])) as client:
        assert client.get(f"/{LIVE}/live.html").text == "this is live.html"
        for name in ("notes.txt", "none.html", "..%2Fsecret.html", "%2e%2e/secret.html"):
            assert client.get(f"/{LIVE}/{name}").status_code == 404, name
