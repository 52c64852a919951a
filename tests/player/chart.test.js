import assert from "node:assert/strict";
import test from "node:test";
import { Chart } from "../../assets/player/chart.js";
import { element } from "./dom.js";

const view = (signals = {}) => ({
  given: {}, finalized: 0, drawn: 0,
  width() {}, height() {}, finalize() { this.finalized += 1; },
  data(name, rows) { this.given[name] = rows; },
  async runAsync() { this.drawn += 1; },
  signal(name, value) {
    if (!(name in signals)) throw new Error(`no signal ${name}`);
    if (value !== undefined) signals[name] = value;
    return signals[name];
  },
});

test("a view that comes late, after its axes changed again, is dropped", async () => {
  const waiting = [];
  globalThis.normvizVega = { vegaEmbed: (room, spec) => new Promise((done) => waiting.push([spec.name, done])) };
  const host = element(), chart = new Chart(host), views = [view(), view()];
  const both = [chart.show({ name: "old" }), chart.show({ name: "new" })];
  waiting[1][1]({ view: views[1] });
  waiting[0][1]({ view: views[0] });
  await Promise.all(both);
  assert.equal(chart.view, views[1]);
  assert.deepEqual(views.map(({ finalized }) => finalized), [1, 0]);
  assert.equal(host.children.length, 1);
});

test("the old view stays until the new one has its numbers, and hands on the zoom", async () => {
  const before = view({ loss_zoom_step: [3, 9], loss_zoom_loss: null }), kept = { loss_zoom_step: null, loss_zoom_loss: null };
  const views = [before, view(kept)];
  globalThis.normvizVega = { vegaEmbed: async () => ({ view: views.shift() }) };
  const chart = new Chart(element());
  await chart.show({});
  await chart.show({});
  assert.equal(before.finalized, 0);
  assert.deepEqual(kept, { loss_zoom_step: [3, 9], loss_zoom_loss: null });
  chart.set({ past: [1] });
  await chart.draw();
  assert.deepEqual([before.finalized, chart.view.given], [1, { past: [1] }]);
});

test("a heatmap's picture is a canvas of ours", async () => {
  let patch;
  globalThis.normvizVega = { vegaEmbed: async (room, spec, options) => { patch = options.patch; return { view: view() }; } };
  await new Chart(element()).show({});
  const image = { type: "image", encode: { update: { url: { field: "url" } } } };
  patch({ marks: [{ type: "group", marks: [image] }] });
  assert.deepEqual(image.encode.update, { image: { field: "image" } });
});

test("a chart that can't be drawn says so beside itself, until one can", async () => {
  globalThis.normvizVega = { vegaEmbed: async () => { throw new Error("no canvas"); } };
  const host = element(), chart = new Chart(host);
  await chart.show({});
  assert.deepEqual([host.hidden, host.beside.attributes.role, host.beside.textContent],
    [true, "alert", "This chart can't be drawn (no canvas): reload the page."]);
  globalThis.normvizVega = { vegaEmbed: async () => ({ view: view() }) };
  await chart.show({});
  assert.deepEqual([host.hidden, chart.failed, Boolean(chart.view)], [false, null, true]);
});

test("on the full screen a chart is as high as there is room, and then as before", async () => {
  let high = 213, wide = 0;
  const it = { ...view(), width(value) { return value === undefined ? wide : (wide = value, this); },
    height(value) { return value === undefined ? high : (high = value, this); } };
  globalThis.normvizVega = { vegaEmbed: async () => ({ view: it }) };
  const chart = new Chart(element());
  await chart.show({});
  chart.fit();
  assert.equal(high, 213);
  Object.assign(globalThis, { innerHeight: 720 });
  document.fullscreenElement = { contains: () => true };
  chart.fit();
  assert.equal(high, 520);
  chart.host.currentCSSZoom = 1.2;  // as a projector has it
  chart.fit();
  assert.equal(high, 400);
  document.fullscreenElement = null;
  chart.fit();
  assert.equal(high, 213);
});
