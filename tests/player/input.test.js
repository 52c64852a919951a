import assert from "node:assert/strict";
import test from "node:test";
import { Cursor } from "../../assets/player/cursor.js";
import { input } from "../../assets/player/input.js";
import { element, lane } from "./dom.js";

function player() {
  const cursor = new Cursor(() => {});
  cursor.last = 100;
  cursor.pin(50);
  return { ...input, cursor, root: { contains: () => false } };
}

const press = (it, key, more = {}) => {
  const event = { key, target: { closest: () => null }, prevented: false, preventDefault() { this.prevented = true; }, ...more };
  it.key(event);
  return event.prevented;
};

test("arrows move a step, with shift ten, and escape drops the layer", () => {
  const it = player();
  assert.ok(press(it, "ArrowLeft"));
  assert.equal(it.cursor.step, 49);
  press(it, "ArrowRight", { shiftKey: true });
  assert.equal(it.cursor.step, 59);
  it.cursor.pick(2);
  press(it, "Escape");
  assert.equal(it.cursor.layer, null);
});

test("keys in a field, with control, or of no meaning here, are left alone", () => {
  const it = player();
  assert.ok(!press(it, "ArrowLeft", { target: { closest: (busy) => busy.includes("input") } }));
  assert.ok(!press(it, "ArrowLeft", { ctrlKey: true }));
  assert.ok(!press(it, "x") && !press(it, "Home"));
  assert.ok(!press(it, " ", { target: { closest: (some) => some.startsWith("button") } }));
  assert.equal(it.cursor.step, 50);
  it.root.contains = () => true;
  press(it, "End");
  assert.equal(it.cursor.step, 100);
});

test("up and down pick a layer where a chart has the focus, and scroll the page elsewhere", () => {
  const it = { ...player(), lanes: [{ about: { first: 1, depth: 3 } }, { about: { first: 1, depth: 4 } }] };
  const chart = { target: { closest: (some) => some.includes(".nv-chart") && !some.includes("input") } };
  assert.ok(!press(it, "ArrowUp"));
  assert.equal(it.cursor.layer, null);
  assert.ok(press(it, "ArrowUp", chart));
  assert.equal(it.cursor.layer, 1);
  press(it, "ArrowDown", chart);
  assert.equal(it.cursor.layer, 1);
  for (let i = 0; i < 9; i++) press(it, "ArrowUp", chart);
  assert.equal(it.cursor.layer, 4);
  press(it, "Escape", chart);
  press(it, "ArrowDown", chart);
  assert.equal(it.cursor.layer, 4);
});

test("with shortcuts turned off keys act in the player alone", () => {
  const it = { ...player(), what: { shortcuts: false } };
  assert.ok(!press(it, "ArrowLeft") && !press(it, " "));
  assert.equal(it.cursor.step, 50);
  it.root.contains = () => true;
  assert.ok(press(it, "ArrowLeft"));
  assert.equal(it.cursor.step, 49);
});

function pointed(name, chart) {
  const it = { ...player(), tip() {} }, host = element();
  it.pointer({ host, ...chart }, name);
  return [it.cursor, (kind, more = {}) => host.listeners[kind]({ clientX: 10, clientY: 20, ...more })];
}

const scales = { x: Object.assign((step) => step, { invert: (x) => x / 2 }), y: { invert: (y) => y / 10 } };
const heat = { canvas: {}, view: { scale: (name) => scales[name] }, place: ({ clientX: x, clientY: y }) => ({ x, y, inside: x < 200 }) };

test("a pointer shows its step, a click keeps it and the layer, a drag does neither", () => {
  const [cursor, act] = pointed("heat0", heat);
  act("pointermove", { clientX: 40 });
  assert.deepEqual([cursor.at, cursor.step], [20, 50]);
  act("pointermove", { clientX: 999 });
  assert.equal(cursor.at, 50);
  act("pointerdown", { clientX: 40 });
  act("click", { clientX: 60 });
  assert.equal(cursor.step, 50);
  act("pointerdown", { clientX: 40 });
  act("click", { clientX: 40 });
  assert.deepEqual([cursor.step, cursor.layer], [20, 2]);
});

test("a bar is a layer and no step", () => {
  const across = Object.assign((layer) => 100 * (layer - 1), { bandwidth: () => 80, domain: () => [1, 2] });
  const [cursor, act] = pointed("bars", { ...heat, view: { scale: () => across } });
  act("pointerdown", { clientX: 120 });
  act("click", { clientX: 120 });
  assert.deepEqual([cursor.step, cursor.layer], [50, 2]);
});

test("a cell's words are those of the record that holds there", () => {
  const it = { ...player(), laneOf: () => lane([1, 1, 1, 1], [0, 2], [[0.5, NaN], [7, 8]]) };
  assert.equal(it.cell("heat0", 1, 1), "layer 1, step 0: 0.5");
  assert.equal(it.cell("heat0", 1, 2), "layer 2, step 0: not finite");
  assert.equal(it.cell("heat0", 9, 1), "");
  const net = { ...it, laneOf: () => lane(Array(400).fill(1), [0, 64, 399], [[1, 2], [3, 4], [5, 6]], { row: "time step" }) };
  assert.deepEqual([net.cell("heat0", 64, 1), net.cell("heat0", 65, 1)], ["time step 1, step 64: 3", ""]);
  assert.equal(it.cell("heat0", 1, 9), "");
});
