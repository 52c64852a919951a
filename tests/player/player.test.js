import assert from "node:assert/strict";
import test from "node:test";
import { Cursor } from "../../assets/player/cursor.js";
import { Player } from "../../assets/player/player.js";
import { element } from "./dom.js";

const packed = (...values) => Buffer.from(Float32Array.from(values).buffer).toString("base64");
globalThis.matchMedia = () => ({ matches: false });

// A player without a page: what it asks for, and how often it draws.
function player() {
  const asked = [], root = element(), drawn = [];
  root.querySelectorAll = () => [];
  const it = Object.assign(Object.create(Player.prototype), {
    root, lanes: [], charts: {}, sets: {}, options: { source: { ask: (request, receive) => asked.push([request(), receive]) } },
    find: () => element(), walk() {}, nameLoss() {}, reveal() { it.revealed = (it.revealed ?? 0) + 1; }, fade() {}, redraw: (what) => drawn.push(what),
    build(message) { it.built = message.charts; it.lanes.forEach((lane, i) => { lane.about = message.about[i]; }); },
  });
  it.cursor = new Cursor(() => {});
  it.update({ topic: { runs: [1], probe: "grad_block", view: "heat", dark: false }, start: "follow", nonce: 0 });
  return { it, asked, drawn };
}

const about = [{ first: 1, depth: 1, steps: 9 }];

test("curves that begin to train come into view, also the first ones of a page; no others do", () => {
  const { it } = player();
  assert.equal(it.revealed, undefined);
  it.what = undefined;
  it.update({ topic: { runs: [1] }, start: "follow", begins: true, nonce: 1 });
  assert.equal(it.revealed, 1);
  it.update({ topic: { runs: [2] }, start: "follow", begins: true, nonce: 1 });
  assert.equal(it.revealed, 1);
  it.update({ topic: { runs: [3] }, start: "follow", begins: false, nonce: 2 });
  assert.equal(it.revealed, 1);
  it.update({ topic: { runs: [3] }, start: "follow", begins: true, nonce: 3 });
  assert.equal(it.revealed, 2);
});
const numbers = (from, ...loss) => [{ from: [from, 0], loss: packed(...loss), records: [], values: "", bad: null }];
const first = { view: "heat", probe: "grad_block", live: true, charts: {}, about, lanes: numbers(0, 4, 3), sets: {} };

test("it asks for all at first, then for what it lacks, and follows what comes", () => {
  const { it, asked, drawn } = player();
  assert.deepEqual(asked[0][0], { runs: [1], probe: "grad_block", view: "heat", dark: false, linear: false, have: [] });
  it.receive(first);
  it.receive({ ...first, charts: undefined, lanes: numbers(2, 2) });
  assert.deepEqual([it.lanes[0].loss, it.cursor.step, drawn.at(-1)], [[4, 3, 2], 2, "data"]);
  it.look({ linear: true });
  assert.deepEqual([asked.at(-1)[0].have, asked.at(-1)[0].linear], [[[3, 0]], true]);
});

test("an answer to an earlier question is no answer", () => {
  const { it } = player();
  it.receive({ ...first, view: "walk" });
  it.receive({ ...first, probe: "stream_rms" });
  it.receive({ ...first, charts: undefined });
  assert.deepEqual(it.lanes, []);
});

test("where numbers before are missing it asks for all again", () => {
  const { it, asked } = player();
  it.receive(first);
  it.receive({ ...first, charts: undefined, lanes: numbers(7, 1) });
  assert.deepEqual([asked.length, asked.at(-1)[0].have], [2, []]);
});

test("what was chosen here is not undone by what the page said before; a new run is asked for anew", () => {
  const { it, asked } = player();
  const topic = { runs: [1], probe: "grad_block", view: "heat", dark: false }, said = { topic, start: "follow", nonce: 0 };
  it.look({ probe: "stream_rms" });
  it.update(said);
  assert.deepEqual([it.topic.probe, asked.length], ["stream_rms", 2]);
  it.update({ ...said, topic: { ...topic, runs: [2] } });
  assert.deepEqual([asked.at(-1)[0].runs, asked.at(-1)[0].have], [[2], []]);
});

test("a replay starts at step 0 unless motion is unwelcome", () => {
  const { it } = player();
  it.receive({ ...first, live: false });
  for (const [matches, step] of [[false, 0], [true, 1]]) {
    globalThis.matchMedia = () => ({ matches });
    it.start = "replay";
    it.begin();
    assert.deepEqual([it.cursor.step, Boolean(it.cursor.playing)], [step, !matches]);
  }
});

test("curves of other seeds grow, and are counted anew when there are others", () => {
  const { it } = player();
  it.repeat([[{ from: 0, loss: packed(4) }, { from: 0, loss: packed(5) }]]);
  it.repeat([[{ from: 1, loss: packed(3) }, { from: 1, loss: "" }]]);
  assert.deepEqual(it.repeats, [[[4, 3], [5]]]);
  it.repeat([[{ from: 0, loss: packed(1) }]]);
  assert.deepEqual(it.repeats, [[[1]]]);
});
