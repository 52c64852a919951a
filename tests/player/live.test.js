import assert from "node:assert/strict";
import test from "node:test";
import { Live, bytesOf, namesOf, unpacked } from "../../assets/player/live.js";

// Links are compared with the app's in test_trained.py; the page is driven in tests/browser/test_static_page.py.
test("a lane's name says its placement and what else differs", () => {
  const choice = (key, label) => ({ key, label });
  const data = { titles: { lr: "learning rate", depth: "depth" }, offered: { scheme: [choice("pre", "Pre-LN")], norm: [choice("rmsnorm", "RMSNorm")], init: [choice("torch", "PyTorch")], depth: [choice(4, "4")], lr: {} } };
  const lane = { scheme: "pre", norm: "rmsnorm", init: "torch", depth: 4, lr: 0.1, warmup: 0 };
  assert.deepEqual(namesOf([lane, { ...lane, lr: 0.2 }], data), ["A Pre-LN, learning rate 0.1", "B Pre-LN, learning rate 0.2"]);
  assert.deepEqual(namesOf([lane, { ...lane, scheme: "pre" }], data), ["A Pre-LN", "B Pre-LN"]);
});

test("files are packed by gzip", async () => {
  assert.deepEqual(await unpacked(bytesOf("H4sIAAAAAAACA6tWSlSyMqwFAK+sG1YHAAAA")), { a: 1 });
});

test("Pause stops what is granted, and Go on grants more", () => {
  const page = { plays: true, granted: 5, grant(until) { this.granted = until; }, draw() {}, buttons() {} };
  const pressed = () => { Live.prototype.pause.call(page); return [page.plays, page.granted > 5]; };
  assert.deepEqual([pressed(), pressed()], [[false, false], [true, true]]);
});
