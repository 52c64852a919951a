import assert from "node:assert/strict";
import test from "node:test";
import { drawWalk, walkFinding } from "../../assets/player/walk.js";
import { element } from "./dom.js";

const plan = JSON.parse(process.env.NORMVIZ_WALK);

test("the finding says both ends, and how much the gradient changes on its way", () => {
  assert.equal(walkFinding({ stream_rms: [1.2, 3, 10.9], grad_hidden: [4e-7, 1e-4, 0.003] }),
    "Activation RMS 1.2 at the embedding, 10.9 after block 2; gradient 0.003 after block 2, 4e-7 at the embedding: 7500 times less.");
  assert.match(walkFinding({ grad_hidden: [0.1, 0.1] }), /at the embedding\.$/);
  assert.match(walkFinding({ grad_hidden: [NaN, 1] }), /1 after block 1, not finite at the embedding/);
  assert.equal(walkFinding({}), "No numbers at this step yet.");
});

test("it is built once, moves with its values, and a click picks the layer", () => {
  const host = element(), picked = [], n = plan.depth;
  const values = { stream_rms: Array(n + 1).fill(1), grad_hidden: Array(n + 1).fill(0.1), grad_block: Array(n).fill(0.1), branch_ratio: Array(n).fill(0.5) };
  const options = { layer: null, color: "#123456", dark: false, pick: (layer) => picked.push(layer) };
  drawWalk(host, plan, values, options);
  const view = host.nvWalk;
  assert.equal(view.words.textContent, walkFinding(values));
  drawWalk(host, plan, { ...values, stream_rms: Array(n + 1).fill(7) }, { ...options, layer: 1 });
  assert.equal(host.nvWalk, view);
  assert.match(view.words.textContent, /^Block 1: stream RMS 7,/);
  view.svg.getBoundingClientRect = () => ({ top: 0, width: plan.width });
  view.svg.listeners.click({ clientY: view.blocks[0].y - 1 });
  view.svg.listeners.keydown({ key: "ArrowUp", preventDefault() {} });
  assert.deepEqual(picked, [1, 2]);
});
