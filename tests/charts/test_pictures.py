"""Charts as pictures, drawn without a browser: what they show, and that they ask no other host."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import altair as alt
import pytest
from charts_kit import broken, drawn, make

from normviz.charts import loss, theme
from normviz.export import picture, vega

PNG = b"\x89PNG\r\n\x1a\n"
POINTS = [{"x": 1, "y": 2.0}, {"x": 2, "y": float("nan")}]


def size(png: bytes) -> tuple[int, int]:
    """Pixels across and down, from the header."""
    assert png.startswith(PNG)
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


@pytest.mark.slow
def test_the_page_s_charts_become_pictures() -> None:
    lanes = [make(), make("post"), broken()]
    its = drawn(lanes, 30)
    charts = {
        "loss": (loss.chart(lanes), "loss (nats per token)"),
        "loss of the browser": (its["loss"], "loss (nats per token)"),
        "bars": (its["bars"], "layer"),
        "heatmap": (its["heat2"], "data:image/png"),
    }
    for name, (chart, words) in charts.items():
        svg = picture(chart, "svg").decode()
        assert svg.startswith("<svg"), name
        assert words in svg
        assert "step 20, layer 4" in svg or name == "bars"


@pytest.mark.slow
def test_scale_multiplies_the_pixels() -> None:
    chart = loss.chart([make()])
    small, large = (size(picture(chart, "png", scale)) for scale in (1.0, 2.0))
    assert small[0] == 720 and large == (2 * small[0], 2 * small[1])
    assert size(picture(chart, "png", 1.0, width=400))[0] == 400


@pytest.mark.slow
def test_a_look_and_a_background() -> None:
    chart = loss.chart([make()], dark=True)
    svg = picture(chart, "svg", config=theme(dark=True), background="#0e1117").decode()
    assert 'fill="#0e1117"' in svg
    assert 'fill="#c9ced6"' in svg, "the words of the dark page"
    assert 'fill="white"' in picture(chart, "svg").decode()


def test_an_altair_chart_and_named_rows() -> None:
    plain = alt.Chart(alt.Data(values=POINTS)).mark_point().encode(x="x:Q", y="y:Q")
    assert picture(plain, "png").startswith(PNG)
    named = alt.Chart(alt.NamedData(name="rows")).mark_point().encode(x="x:Q", y="y:Q")
    both = alt.vconcat(named, named).to_dict()
    assert picture({**both, "datasets": {"rows": POINTS}}, "svg").startswith(b"<svg")
    assert "datasets" not in both, "the spec that was given stays as it is"


def test_rows_that_are_not_there_are_named() -> None:
    named = alt.Chart(alt.NamedData(name="rows")).mark_point().encode(x="x:Q")
    with pytest.raises(ValueError, match="names the dataset 'rows', which is not in it"):
        picture(named, "svg")


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_what_lies_elsewhere_is_not_fetched(kind: str) -> None:
    """Port 9 of this machine answers nobody: a picture that asked it would say something else."""
    data = alt.Chart("http://127.0.0.1:9/x.json").mark_point().encode(x="x:Q")
    with pytest.raises(ValueError, match=r"can't fetch data from 'http://127.0.0.1:9/x.json'"):
        picture(data, kind)
    rows = alt.Data(values=[{"u": "http://127.0.0.1:9/x.png"}])
    image = alt.Chart(rows).mark_image(width=9, height=9).encode(url="u:N")
    with pytest.raises(ValueError, match=r"can't fetch the image 'http://127.0.0.1:9/x.png'"):
        picture(image, kind)


def test_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="png or svg, not 'gif'"):
        picture(loss.chart([make()]), "gif")


@pytest.mark.slow
def test_another_process_draws_the_same() -> None:
    """And this one stays as small as it was."""
    chart = loss.chart([make()])
    assert picture(chart, "png", in_process=True) == picture(chart, "png")
    code = (
        "import sys; from normviz.export import picture;"
        "spec = {'mark': 'bar', 'data': {'values': [{'a': 1}]}};"
        "assert picture(spec, 'png', in_process=True)[1:4] == b'PNG';"
        "sys.exit('vl_convert' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_what_another_process_can_not_draw_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = alt.Data(values=[{"u": "http://127.0.0.1:9/x.png"}])
    image = alt.Chart(rows).mark_image(width=9, height=9).encode(url="u:N")
    with pytest.raises(ValueError, match=r"^a picture can't fetch the image 'http://127.0.0.1:9/x"):
        picture(image, "png", in_process=True)
    monkeypatch.setattr("normviz.export.vega.SECONDS", 0.01)
    with pytest.raises(ValueError, match=r"not drawn after 0\.01 s"):
        picture(loss.chart([make()]), "svg", in_process=True)


def test_other_processes_draw_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing, most, turn = [0], [0], threading.Barrier(2)

    def run(*_: object, **__: object) -> SimpleNamespace:
        drawing[0] += 1
        most[0] = max(most[0], drawing[0])
        with contextlib.suppress(threading.BrokenBarrierError):
            turn.wait(0.2)  # passes at once where two draw
        drawing[0] -= 1
        return SimpleNamespace(returncode=0, stdout=b"a picture")

    monkeypatch.setattr("normviz.export.vega.subprocess.run", run)
    with ThreadPoolExecutor(3) as pool:
        drawn = [pool.submit(vega.draw_in_process, {}, "png", 1.0) for _ in range(3)]
    assert [one.result() for one in drawn] == [b"a picture"] * 3
    assert most[0] == 1


def test_a_turn_that_does_not_come_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vega, "SECONDS", 0.01)
    with (
        vega.ALONE,
        pytest.raises(ValueError, match=r"other pictures are drawn first, for 0\.01 s"),
    ):
        vega.draw_in_process({}, "png", 1.0)
    assert vega.ALONE.acquire(timeout=60)  # and it was left to whoever has it
    vega.ALONE.release()
