import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as later } from "node:timers/promises";
import { Chart } from "../../assets/player/chart.js";
import { drawing } from "../../assets/player/draw.js";
import { element, lane } from "./dom.js";

test("a chart that can't be drawn stops no other, and no frame asks for the next", async () => {
  let frames = 0, broken = true;
  globalThis.requestAnimationFrame = (frame) => { frames += 1; if (frames < 50) setImmediate(() => frame(performance.now())); };
  const view = () => ({ width() {}, height() {}, finalize() {}, given: [], data(name) { this.given.push(name); }, async runAsync() {} });
  globalThis.normvizVega = { async vegaEmbed(room, { name }) {
    if (broken && name === "bars") throw new Error("no canvas");
    return { view: view() };
  } };
  const charts = Object.fromEntries(["loss", "bars"].map((name) => [name, new Chart(element())]));
  const page = { ...drawing, charts, cursor: { tick: () => false }, drawCursor() {}, drawWalks() {}, drawWords() {}, controls() {}, overlays() {},
    drawNumbers() {
      for (const chart of [charts.bars, charts.loss]) { chart.set({ rows: [] }); chart.stale = true; }
    } };
  const show = () => Promise.all(Object.entries(charts).map(([name, chart]) => chart.show({ name })));
  page.building = show();
  page.redraw("data");
  for (let tries = 0; tries < 400 && !charts.loss.view?.given.length; tries += 1) await later(25);
  await later(50);
  assert.deepEqual([frames, charts.loss.view?.given, charts.bars.host.hidden], [1, ["rows"], true]);
  assert.match(charts.bars.host.beside.textContent, /no canvas/);
  broken = false;
  await show();
  assert.deepEqual([charts.bars.failed, charts.bars.host.hidden, Boolean(charts.bars.view)], [null, false, true]);
});

test("charts that take long are drawn in frames of their own, and quick ones in one", async () => {
  let frames = 0;
  globalThis.requestAnimationFrame = (frame) => { frames += 1; setImmediate(() => frame(performance.now())); };
  const draws = (ms) => async () => { for (const end = performance.now() + ms; performance.now() < end;); };
  for (const [ms, expected] of [[10, 2], [0, 0]]) {
    const charts = Array.from({ length: 3 }, () => ({ stale: true, draw: draws(ms) }));
    frames = 0;
    await drawing.drawCharts([...charts, { stale: false }], performance.now());
    assert.deepEqual([frames, charts.map(({ stale }) => stale)], [expected, [false, false, false]]);
  }
});

test("frames are asked for once at a time, and numbers are not forgotten for the cursor", () => {
  let frames = 0;
  globalThis.requestAnimationFrame = () => { frames += 1; };
  const page = { ...drawing };
  for (const what of ["cursor", "data", "cursor"]) page.redraw(what);
  assert.deepEqual([frames, page.due], [1, "data"]);
});

test("the loss is drawn up to the cursor, and the bars are of the record there", () => {
  const chart = () => ({ set(sets) { this.sets = sets; } }), charts = { loss: chart(), bars: chart(), lines: chart() };
  const page = {
    ...drawing, charts, lanes: [lane([4, 2, 1], [0, 2], [[1, 2], [3, 4]])], cursor: { at: 1, last: 2 }, find: () => ({ value: "0" }),
  };
  page.drawCursor();
  assert.deepEqual(charts.loss.sets.past.map(({ loss }) => loss), [4, 2]);
  assert.deepEqual([charts.loss.sets.cursor, charts.lines.sets.cursor], [[{ step: 1 }], [{ step: 1 }]]);
  assert.deepEqual(charts.bars.sets.bars.map(({ value }) => value), [1, 2]);
});

test("the loss chart's title has the words for which there is room", () => {
  const loss = { wide: 600 }, titles = [];
  const page = {
    ...drawing, charts: { loss }, lanes: [{ about: { unit: "nats per token" } }], sets: { loss: { held_out: [{}] } },
    seeds: () => "1 seed", find: () => ({ value: "0.9" }), head: (_, ...words) => titles.push(words),
  };
  page.nameLoss();
  loss.wide = 360;
  page.nameLoss();
  assert.deepEqual(titles, [["Training loss", "nats; 1 seed; thick: trend; circles: unseen"], ["Loss", "nats; 1 seed; thick: trend; circles: unseen"]]);
});

test("the signal walk names the step that its numbers are of", () => {
  const plan = JSON.parse(process.env.NORMVIZ_WALK), parts = { b: element("b"), span: element("span") };
  const host = { querySelector: (name) => parts[name], lastElementChild: element() };
  const page = {
    ...drawing, root: { querySelectorAll: () => [host] }, carried: [{ records: [0, 35, 38], values: {} }],
    lanes: [lane([1])], cursor: { at: 40, layer: null }, plan: { plans: [plan], domains: {} }, topic: {},
  };
  page.drawWalks();
  assert.deepEqual([parts.b.textContent, parts.span.textContent], ["A Pre-LN", " (step 38)"]);
  page.carried[0].records = [];
  page.drawWalks();
  assert.equal(parts.span.textContent, "");
});

test("a picture has all rows at the cursor as they are drawn, its loss with the trend", () => {
  const canvas = { toDataURL: () => "data:picture" };
  const page = {
    ...drawing, lanes: [lane([4, 2, 1], [0, 2], [[1, 2], [3, 4]])], repeats: [[[4, 2], [3, 3]]], cursor: { at: 1 },
    sets: { loss: { levels: ["chance"] }, heat0: { bad: ["cross"] } }, charts: { heat0: { canvas } }, trend: () => 0,
  };
  const loss = page.rows("loss");
  assert.deepEqual(loss.past.map((row) => row.loss), [4, 2]);
  const { past, ahead } = { ...page, trend: () => 0.9 }.rows("loss");
  assert.ok(past[0].loss < 4, "over the losses as they were measured");
  assert.deepEqual(ahead.map((row) => row.loss), [4, 2, 1]);
  assert.deepEqual([loss.ahead.length, loss.seeds.length, loss.band.length, loss.levels, loss.cursor],
    [3, 4, 2, ["chance"], [{ step: 1 }]]);
  assert.deepEqual(page.rows("bars").bars.map(({ value }) => value), [1, 2]);
  assert.deepEqual(page.rows("lines").cursor, [{ step: 1 }]);
  assert.deepEqual(page.rows("heat0"), {
    bad: ["cross"], cursor: [{ step: 1 }], ahead: [{ step: 1.5, end: 2.5 }], picture: [{ url: "data:picture" }] });
});

test("a long run has a trend over its losses, unless a visitor chose otherwise", () => {
  const page = (value, span) => ({ ...drawing, find: () => ({ value }), span });
  assert.deepEqual([page("auto", 300).trend(), page("auto", 301).trend(), page("0", 301).trend(), page(".6", 9).trend()],
    [0, 0.9, 0, 0.6]);
});

test("the numbers at the cursor stand beside its rule, on the side with room, where a visitor has moved it", () => {
  const words = Object.assign(element("p"), { textContent: "Step 40" }), figure = Object.assign(element(), { clientWidth: 500 });
  const host = { offsetLeft: 0, offsetTop: 20 }, plot = () => ({ left: 50, top: 10, width: 400 });
  const loss = { figure, host, plot, view: { scale: () => (step) => step } };
  const cursor = { hover: null, step: 399, last: 399, layer: null, get at() { return this.hover ?? this.step; } };
  const it = { ...drawing, cursor, charts: { loss }, find: () => words };
  it.label();
  assert.equal(words.hidden, true);
  cursor.hover = 100;
  it.label();
  assert.deepEqual([words.hidden, words.style.left, words.style.right, words.style.top], [false, "158px", "", "34px"]);
  cursor.hover = 300;
  it.label();
  assert.deepEqual([words.style.left, words.style.right], ["", "158px"]);
  cursor.hover = null;
  cursor.step = 40;
  cursor.playing = {};
  it.label();
  assert.equal(words.hidden, true);
});
