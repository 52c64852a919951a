import assert from "node:assert/strict";
import test from "node:test";
import { Lane } from "../../assets/player/worker.js";

function lane(run) {
  const sent = [], waiting = [], made = new Lane((message) => sent.push(message), (call) => waiting.push(call));
  made.run = { at: 0, settings: { edits: [] }, get isOver() { return this.at >= 5; }, next() { return { step: this.at++ }; }, ...run };
  return { made, sent, waiting };
}

test("a lane trains up to the step that it may, and no further", async () => {
  const { made, sent } = lane();
  await made.receive({ until: 2 });
  assert.deepEqual(sent.map(({ at, isOver }) => [at, isOver]), [[2, false]]);
  await made.receive({ edit: [2, 0.1] });
  assert.deepEqual(made.run.settings.edits, [[2, 0.1]]);
  await made.receive({ until: 9 });
  assert.deepEqual(sent.map(({ at, isOver }) => [at, isOver]), [[2, false], [5, true]]);
});

test("after a slice it reads its messages first", async (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => (now += 30));
  const { made, waiting } = lane();
  await made.receive({ until: 5 });
  assert.equal(waiting.length, 1);
  const at = made.run.at;
  waiting[0]();
  assert.ok(made.run.at > at);
});

test("an error is a sentence for the page", async () => {
  const { made, sent } = lane({ next() { throw new Error("no memory"); } });
  await made.receive({ until: 1 });
  assert.deepEqual(sent, [{ error: "no memory" }]);
});
