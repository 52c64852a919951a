import assert from "node:assert/strict";
import test from "node:test";
import { cited, explained, grouped, panel } from "../../assets/player/panel.js";
import { element, lane } from "./dom.js";

test("sources link to their papers, and to nothing else", () => {
  const [before, link, after] = cited("Xiong et al., arXiv:2002.04745, section 3");
  assert.deepEqual([before, after], ["Xiong et al., ", ", section 3"]);
  assert.deepEqual([link.href, link.rel], ["https://arxiv.org/abs/2002.04745", "noopener noreferrer"]);
});

test("the unit of the loss opens its sentence, on a page that has it", (t) => {
  const there = t.mock.fn(() => null);
  document.getElementById = there;
  assert.deepEqual(explained("nats; 1 seed"), ["nats; 1 seed"]);
  there.mock.mockImplementation(() => element());
  const [word, rest] = explained("nats; 1 seed");
  assert.deepEqual([word.textContent, word.attributes.popovertarget, rest], ["nats", "word-nat", "; 1 seed"]);
  assert.deepEqual(explained("1 seed"), ["1 seed"]);
});

test("quantities without a group come first, the others under the heading of theirs", () => {
  const one = (key, group = "") => ({ key, label: key.toUpperCase(), group });
  const found = grouped([one("a"), one("b", "Outliers"), one("c", "Outliers"), one("d", "Inside")]);
  assert.deepEqual(found.map((it) => [it.tag, it.label ?? it.textContent]),
    [["option", "A"], ["optgroup", "Outliers"], ["optgroup", "Inside"]]);
  assert.deepEqual(found[1].children.map((it) => [it.value, it.textContent]), [["b", "B"], ["c", "C"]]);
});

test("the definition says which lane has no values of the quantity", () => {
  const parts = { ".nv-probe": element("select"), ".nv-definition": element() };
  const it = { ...panel, find: (name) => parts[name], views() {} };
  const probes = [{ key: "a", label: "A", title: "1 - a", group: "", definition: "What it is.", source: "NormViz" }];
  it.choices(probes, "a", "B has no values of it.");
  assert.equal(parts[".nv-definition"].children.at(-1), " B has no values of it.");
  assert.equal(parts[".nv-probe"].value, "a");
  assert.equal(it.title, "1 - a");  // what is drawn
});

test("the readout has each lane's loss at the step, and the picked layer", () => {
  const lanes = [lane([4, 2], [0, 1], [[1, 0.5], [1, 0.25]]), lane([3], [], [], { name: "B" }), lane([], [], [], { name: "C" })];
  const it = { ...panel, lanes, cursor: { at: 1, layer: 2 } };
  assert.equal(it.readout(), "Step 1\nA Pre-LN loss 2.00, layer 2: 0.25\nB loss 3.00 (step 0)");
  assert.equal({ ...it, lanes: [lane([])] }.readout(), "");
});

test("readout and table name the step that a number is of", () => {
  const a = lane(Array(41).fill(2), [0, 35, 38], [[1, 9], [2, 9], [3, 9]]), places = { ".nv-table div": element() };
  const b = lane(Array(39).fill(3), [0, 35], [[4, 9], [5, 9]], { name: "B Post-LN", short: "B" });
  const it = { ...panel, lanes: [a, b], title: "Parameter gradient", find: (name) => places[name], cursor: { at: 40, layer: 1 } };
  assert.equal(it.readout(), "Step 40\nA Pre-LN loss 2.00, layer 1: 3 (step 38)\nB Post-LN loss 3.00 (step 38), layer 1: 5 (step 35)");
  const caption = () => {
    it.table();
    return places[".nv-table div"].children[0].caption.textContent;
  };
  assert.equal(caption(), "Parameter gradient at step 38 (B: step 35)");
  const losses = places[".nv-table div"].children[0].children[1].children.map(({ textContent }) => textContent);
  assert.deepEqual(losses, ["loss, step 40", "2.00", "3.00 (step 38)"]);
  it.cursor.at = 0;
  assert.equal(caption(), "Parameter gradient at step 0");
  it.lanes = [lane([1])];
  assert.equal(caption(), "Parameter gradient: nothing was recorded yet");
});

test("seeds are counted", () => {
  assert.equal(panel.seeds.call({}), "1 seed");
  assert.equal(panel.seeds.call({ repeats: [[[], [], []], []] }), "3 seeds, the first bold");
});

test("the pace is that of the last three seconds in which steps came, once two seconds of them were measured", (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => 1000 * now);
  const it = { ...panel }, at = (seconds, done, words = "Step 9 of 90", total = 90) => { now = seconds; return it.pace({ done, total, words }); };
  assert.equal(at(0, 0, "Loading PyTorch in a worker: a few seconds"), "");
  assert.equal(at(8, 0), "");
  assert.equal(at(9, 1), "", "no step was waited for so long");
  assert.equal(at(10, 11), "");
  assert.equal(at(11, 21), ", 10 steps/s, about 7 s left", "of the steps, without the wait");
  assert.equal(at(11.1, 21), ", 10 steps/s, about 7 s left", "nothing new");
  assert.equal(at(11, 30, "waiting"), "");
  assert.equal(at(12, 30, "Paused at step 29 of 90"), "");
  assert.equal(at(40, 30), "", "measured anew after a pause");
  for (const second of [41, 42, 43]) at(second, 30 + 5 * (second - 40));
  assert.equal(at(44, 50), ", 5 steps/s, about 8 s left");
  assert.equal(at(45, 130, "130 of 180 steps in all runs", 180), "", "other steps are counted");
  assert.equal(at(46, 1), "", "another run began");
  assert.equal(at(56, 2), ", 0 steps/s, about 880 s left");
});

test("a change is told once, after a while where many watch", (t) => {
  const waits = [], told = [], parts = { progress: {}, span: {} };
  t.mock.method(globalThis, "setTimeout", (act, wait) => { waits.push([act, wait]); return waits.length; });
  t.mock.method(Math, "random", () => 0.5);
  const bar = { querySelector: (name) => parts[name] };
  const it = { ...panel, find: () => bar, what: { signature: "a" }, options: { changed: (now) => told.push(now) } };
  const status = (signature, spread) => it.status({ signature, spread, words: "", done: 0, total: 1 });
  status("a");
  status("b", 16);
  status("c", 16);
  assert.deepEqual([told, waits.length, waits[0][1]], [[], 1, 8000]);
  waits[0][0]();
  status("c");
  status("d");
  assert.deepEqual(told, ["c", "d"]);
});

test("a page that did not hear of a change, because its server was away, is told again until it follows", (t) => {
  const acts = [], told = [], parts = { progress: {}, span: {} };
  t.mock.method(globalThis, "setTimeout", (act) => acts.push(act));
  const it = {
    ...panel, find: () => ({ querySelector: (name) => parts[name] }), what: { signature: "runs" },
    options: { changed: (now) => told.push(now) },
  };
  it.status({ signature: "failed", words: "", done: 0, total: 1 });
  acts.pop()();
  acts.pop()();
  assert.deepEqual(told, ["failed", "failed", "failed"]);
  it.what = { signature: "failed" };
  it.compare();
  acts.pop()();
  assert.deepEqual([told.length, acts.length], [3, 0]);
});

test("a state that the page has shown in between is told again", (t) => {
  t.mock.method(globalThis, "setTimeout", () => 0);
  const told = [], parts = { progress: {}, span: {} };
  const it = {
    ...panel, find: () => ({ querySelector: (name) => parts[name] }), what: { signature: "runs" },
    options: { changed: (now) => told.push(now) },
  };
  const status = (signature) => it.status({ signature, words: "", done: 0, total: 1 });
  const page = (signature) => { it.what = { signature }; it.compare(); };
  status("paused");
  page("paused");
  page("runs");  // by the press that resumed it: the page was drawn before the state came
  assert.deepEqual(told, ["paused", "paused"]);
  status("runs");
  status("paused");
  assert.deepEqual(told, ["paused", "paused", "paused"]);
  page("paused");
  status("paused");
  assert.equal(told.length, 3);
});

test("a chart is saved under its name and step; where it can't be, a sentence stands under it", async () => {
  const files = [];
  let works = true, title, config;
  globalThis.normvizVega = { async vegaEmbed(place, spec) {
    if (!works) throw new Error("no memory");
    ({ title, config } = spec);
    return { view: { toImageURL: async () => "data:it" }, finalize() {} };
  } };
  const figure = element(), chart = { figure, spec: '{"config":"dark"}', saved: '{"config":"light"}' };
  const it = { ...panel, charts: { loss: chart }, cursor: { at: 48 }, rows: () => ({}),
    curves: () => "1 seed; thick: trend; thin: held-out", what: { name: "normviz-a-against-b", caption: ["A against B"] } };
  await it.save("loss", "svg");
  assert.deepEqual(title.subtitle, ["Training loss, 1 seed; thick: trend; thin: held-out."]);
  assert.equal(config, "light", "a saved chart is light on a dark page too");
  files.push(...globalThis.clicked.map(({ download }) => download));
  works = false;
  await it.save("loss", "png");
  await it.save("loss", "png");
  assert.deepEqual(files, ["normviz-a-against-b-loss-step48.svg"]);
  assert.deepEqual(figure.children.map(({ textContent }) => textContent), ["This chart can't be saved (no memory)."]);
  works = true;
  await it.save("loss", "png");
  assert.deepEqual(figure.children, []);
});
