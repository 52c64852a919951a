import assert from "node:assert/strict";
import test from "node:test";
import { buildWalk } from "../../assets/player/walk_build.js";
import { element } from "./dom.js";

// A plan of normviz/player/walk.py.
const plan = JSON.parse(process.env.NORMVIZ_WALK);

test("every block is there with its number, and both ends, and the words of the plan", () => {
  const host = element(), view = buildWalk(host, plan), inside = view.svg.all();
  assert.equal(view.blocks.length, plan.nodes.filter((node) => node.kind === "block").length);
  const words = inside.map((node) => node.textContent);
  for (const block of view.blocks) assert.ok(words.includes(String(block.layer)));
  for (const node of plan.nodes.filter(({ kind }) => kind === "embed" || kind === "head")) assert.ok(words.includes(node.words));
  assert.deepEqual(view.arrows.map(({ up }) => up), [true, false]);
  assert.ok(inside.some((node) => node.attributes.class?.includes("nv-walk-norm")));
});
