import assert from "node:assert/strict";
import test from "node:test";
import { captioned, copyPicture, printPicture, savePicture } from "../../assets/player/picture.js";
import "./dom.js";

function vega(toImageURL) {
  const calls = { finalized: 0 };
  globalThis.normvizVega = { async vegaEmbed(room, spec, options) {
    Object.assign(calls, { spec, options });
    return { view: { toImageURL }, finalize() { calls.finalized += 1; } };
  } };
  globalThis.clicked.length = 0;
  return calls;
}

test("a file has one width, a white ground, and all rows; PNG at twice the size", async () => {
  const asked = [], rows = [{ step: 1, loss: NaN }];
  const calls = vega(async (...more) => { asked.push(more); return "data:it"; });
  for (const kind of ["png", "svg"]) await savePicture({ title: "A" }, { past: rows }, kind, `it.${kind}`);
  assert.deepEqual(asked, [["png", 2], ["svg", 1]]);
  assert.deepEqual(calls.spec, { title: "A", background: "#ffffff", width: 720, datasets: { past: rows } });
  assert.notEqual(calls.spec.datasets.past[0], rows[0], "the rows on the page stay as they are");
  assert.equal(calls.options.actions, false);
  assert.deepEqual(globalThis.clicked.map(({ href, download }) => [href, download]), [["data:it", "it.png"], ["data:it", "it.svg"]]);
  assert.equal(calls.finalized, 2);
});

test("what can't be drawn is thrown, and the view is given back", async () => {
  const calls = vega(async () => { throw new Error("no memory"); });
  await assert.rejects(savePicture({}, {}, "png", "it.png"), /no memory/);
  assert.deepEqual([calls.finalized, globalThis.clicked.length], [1, 0]);
});

test("a saved chart says which duel it is of, its settings and its address", () => {
  const lines = ["Pre-LN against Post-LN", "12 blocks", "https://a.org/?v=1"];
  const { title } = captioned({ mark: "line" }, lines);
  assert.deepEqual([title.text, title.subtitle], [["Pre-LN against Post-LN"], ["12 blocks", "https://a.org/?v=1"]]);
  const heat = captioned({ title: { text: "A Pre-LN", subtitle: "Gradient", color: "#123456" } }, lines).title;
  assert.deepEqual([heat.text, heat.color, heat.subtitle], ["A Pre-LN", "#123456", ["Gradient", ...lines]]);
  assert.deepEqual(captioned({ mark: "line" }, []), { mark: "line" });
  const long = `${"Post-LN, Xavier init ".repeat(6)}against Pre-LN`, whole = captioned({ mark: "line" }, [long]).title.text;
  assert.equal(whole.join(" "), long);
  assert.ok(whole.length === 2 && whole.every((line) => line.length <= 84), "no title is cut");
});

test("a chart is printed on a page of its size, from a frame that runs no script and goes away", async () => {
  const calls = vega(), body = document.createElement("body"), svg = '<svg class="marks" width="745" height="310.5" viewBox="0 0 1 1"/>';
  globalThis.normvizVega.vegaEmbed = async () => ({ view: { toSVG: async () => svg }, finalize() { calls.finalized += 1; } });
  let printed = 0;
  document.body = body;
  await printPicture({}, {}, "a-loss-step3");
  const [frame] = body.children;
  assert.match(frame.srcdoc, /@page { size: 745px 310.5px; margin: 0 }/);
  assert.ok(frame.srcdoc.includes(svg) && frame.srcdoc.includes("<title>a-loss-step3</title>"));
  assert.doesNotMatch(frame.attributes.sandbox, /allow-scripts/);
  frame.contentWindow = { print() { printed += 1; } };
  frame.onload();
  frame.contentWindow.onafterprint();
  assert.deepEqual([printed, body.children.length, calls.finalized], [1, 0, 1]);
});

test("a copied chart is a PNG in the clipboard", async () => {
  const calls = vega(), canvas = { toBlob: (done, kind) => done(`a ${kind}`) }, written = [];
  globalThis.normvizVega.vegaEmbed = async () => ({ view: { toCanvas: async () => canvas }, finalize() { calls.finalized += 1; } });
  globalThis.ClipboardItem = class { constructor(parts) { Object.assign(this, parts); } };
  const clipboard = { write: async ([item]) => written.push(await item["image/png"]) };
  Object.defineProperty(globalThis, "navigator", { value: { clipboard }, configurable: true });
  await copyPicture({}, {});
  assert.deepEqual([written, calls.finalized], [["a image/png"], 1]);
});
