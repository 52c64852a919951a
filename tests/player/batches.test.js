import assert from "node:assert/strict";
import test from "node:test";
import { batchOf, heldOutBatch, pick } from "../../assets/player/batches.js";

test("a bound belongs to the number above it", () => {
  assert.deepEqual([0, 0.2, 0.5, 0.9].map((x) => pick([0.2, 0.5], x)), [0, 1, 2, 2]);
});

test("the second half of a copy counts, and the held-out batch has a name of its own", () => {
  const asked = [], numbers = [0, 0.5, 0.25, 0.75];
  const tape = { model: { batch: 2, seq_len: 4 }, uniform: (...of) => { asked.push(of); return Float64Array.from(numbers); } };
  const task = { key: "copy", vocabulary: 4 };
  const { inputs, targets } = batchOf(tape, task, 3, 7);
  assert.deepEqual([...inputs], [0, 2, 0, 2, 1, 3, 1, 3]);
  assert.deepEqual([...targets], [-100, 0, 2, -100, -100, 1, 3, -100]);
  heldOutBatch(tape, task);
  assert.deepEqual(asked, [["batch", 3, 7, 4], ["held out", 0, 0, 4]]);
});
