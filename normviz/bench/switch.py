"""How long a turn of the opening duel's placement switch takes until the finished curves of the new
placement are drawn, in a real browser; beside it a setting whose change only runs the page's script."""

from __future__ import annotations

import os
from collections.abc import Callable
from statistics import median

from .browser import SIZE, served, visited

WAYS = ("Peri-LN", "Sandwich-LN", "DeepNorm", "Post-LN")
"""Placements whose runs with the opening duel's other settings ship."""
WATCH = """(read) => {
  let began = null;
  for (const act of ["pointerdown", "keydown"]) {
    addEventListener(act, () => { began ??= performance.now(); }, { once: true, capture: true });
  }
  const state = eval(read), before = state();
  window.turned = new Promise((done) => {
    const frame = () => requestAnimationFrame(() => {
      const now = state();
      began !== null && now && now !== before ? done(performance.now() - began) : frame();
    });
    frame();
  });
}"""
"""Measures from the next press until a state has changed, in milliseconds."""
CURVES = """() => {
  const { what, cursor, fresh } = document.querySelector(".nv-root").player;
  return !fresh && cursor.step === cursor.last ? JSON.stringify(what.runs) : "";
}"""
"""The runs whose last step is drawn."""
VERDICT = "() => document.querySelector('.st-key-card_1 .stMarkdownBadge')?.innerText ?? ''"


def measure(rounds: int = 5) -> str:
    """Medians and worst of so many rounds through four placements. Needs playwright and chromium."""
    curves, script = list[float](), list[float]()
    with served() as (url, _), visited() as page:
        page.set_default_timeout(60_000)
        page.emulate_media(reduced_motion="reduce")
        page.goto(url)
        page.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 4")
        page.locator(".st-key-by_itself label").click()  # nothing trains here
        page.wait_for_timeout(2000)
        choice = page.locator(".st-key-lane1_scheme")
        steps = page.locator(".st-key-knob_steps input[type=range]")

        def took(read: str, act: Callable[[], object]) -> float:
            page.evaluate(WATCH, read)
            act()
            milliseconds = page.evaluate("window.turned")
            page.wait_for_timeout(1000)
            return milliseconds

        def round_() -> tuple[list[float], list[float]]:
            turned = [took(CURVES, choice.get_by_text(name, exact=True).click) for name in WAYS]
            steps.focus()
            moved = [
                took(VERDICT, lambda key=key: page.keyboard.press(key))
                for key in ("ArrowRight", "ArrowLeft")
            ]
            return turned, moved

        round_()  # what the server loads once
        for _ in range(rounds):
            turned, moved = round_()
            curves += turned
            script += moved
        load = os.getloadavg()[0]
    lines = [
        f"{rounds} rounds, {SIZE}, {os.cpu_count()} cores for server and browser, load {load:.1f}"
    ]
    for name, times in (
        ("placement to its finished curves", curves), ("number of steps to its new verdicts", script),
    ):  # fmt: skip
        lines.append(
            f"  {name:36} median {median(times):5.0f} ms, worst {max(times):5.0f} of {len(times)}"
        )
    return "\n".join(lines)
