import assert from "node:assert/strict";
import test from "node:test";
import { DivergenceGuard, heldOutSteps, lrAt, peakAt, recordedSteps } from "../../assets/player/training.js";

const settings = { lr: 1, edits: [[5, 3], [8, 2]], warmup: 4, schedule: "linear", steps: 14 };

test("the rate rises, falls, and takes a change from its step on", () => {
  assert.deepEqual([0, 3, 4].map((step) => lrAt(settings, step)), [0.25, 1, 1]);
  assert.deepEqual([4, 5, 7, 8, 13].map((step) => peakAt(settings, step)), [1, 3, 3, 2, 2]);
  assert.equal(lrAt(settings, 9), 2 * (1 - 5 / 10));
  assert.equal(lrAt({ ...settings, edits: [], schedule: "cosine" }, 9).toFixed(6), "0.500000");
});

test("the first steps and the last one are recorded", () => {
  const steps = recordedSteps(200);
  assert.ok(steps.has(0) && steps.has(31) && steps.has(32) && !steps.has(33) && steps.has(35) && steps.has(199));
  assert.ok(recordedSteps(2000).size <= 401);
  assert.deepEqual([...heldOutSteps(45)].sort((a, b) => a - b), [19, 39, 44]);
});

const tape = { stream: () => [[1, 5, 200], [], [1, 1, 1]], largestGradients: () => ({ blocks: [1, 2], all: 2 }) };

test("a loss that stays above 100 times chance has diverged where the stream outgrew", () => {
  const guard = new DivergenceGuard(tape, 1);
  for (let step = 0; step < 19; step++) assert.equal(guard.check(step, 200, 1), null);
  assert.deepEqual(guard.check(19, 200, 1), { step: 0, layer: 2, where: "blow-up" });
});

test("one that falls may recover", () => {
  const guard = new DivergenceGuard(tape, 1);
  for (let step = 0; step < 40; step++) assert.equal(guard.check(step, 1000 - step, 1), null);
});

test("what is not finite is named from the front", () => {
  const of = (changes, loss = 1, norm = Infinity) => new DivergenceGuard({ ...tape, ...changes }, 1).check(3, loss, norm);
  assert.deepEqual(of({}, NaN), { step: 3, layer: null, where: "loss" });
  assert.deepEqual(of({ stream: () => [[], [], [1, NaN]] }, NaN), { step: 3, layer: 1, where: "activation" });
  assert.deepEqual(of({}), { step: 3, layer: 2, where: "gradient norm" });
  assert.deepEqual(of({ largestGradients: () => ({ blocks: [1, NaN, 3], all: NaN }) }), { step: 3, layer: 2, where: "gradient" });
});
