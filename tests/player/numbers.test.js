import assert from "node:assert/strict";
import test from "node:test";
import { digits, floats, hasGaps, heldUntil, knownSteps, lossWords, newLane, quotient, recordAt, take } from "../../assets/player/numbers.js";
import { lane } from "./dom.js";

const packed = (...values) => Buffer.from(Float32Array.from(values).buffer).toString("base64");

test("numbers that are not finite survive the way", () => {
  assert.deepEqual([...floats(packed(1.5, NaN, Infinity))], [1.5, NaN, Infinity]);
});

test("a lane takes what follows, takes anew what it is told to, and says what is missing", () => {
  const it = newLane({ first: 1, depth: 2 });
  const fresh = (from, loss, records, values) => ({ from, loss: packed(...loss), records, values: packed(...values), bad: [2, 1] });
  assert.ok(take(it, fresh([0, 0], [3, 2], [0, 1], [1, 2, 3, 4])));
  assert.ok(take(it, fresh([2, 2], [1], [2], [5, 6])));
  assert.deepEqual([it.loss, it.records, it.values.map((row) => [...row])], [[3, 2, 1], [0, 1, 2], [[1, 2], [3, 4], [5, 6]]]);
  assert.ok(take(it, fresh([1, 1], [9], [1], [7, 8])));
  assert.deepEqual([it.loss, it.records, it.bad], [[3, 9], [0, 1], [2, 1]]);
  assert.equal(take(it, fresh([5, 2], [0], [], [])), false);
  assert.equal(take(it, fresh([2, 3], [0], [], [])), false);
  assert.deepEqual(it.loss, [3, 9]);
});

test("a record holds until the next one", () => {
  const it = { records: [0, 10, 20] };
  assert.deepEqual([-1, 0, 9, 10, 25].map((step) => recordAt(it, step)), [-1, 0, 0, 1, 2]);
  assert.equal(recordAt({ records: [] }, 3), -1);
});

test("the last record holds as long as the one before it, but not beyond what has run", () => {
  const known = (ran, ...records) => knownSteps(lane(Array(ran).fill(1), records, [], { steps: 400 }));
  assert.deepEqual([known(0), known(1, 0), known(30, 0, 10), known(14, 0, 10)], [0, 1, 20, 14]);
});

test("a record holds for its own step alone where the next one is far", () => {
  const few = lane(Array(400).fill(1), [0, 1, 4, 14, 64, 399]), third = lane(Array(200).fill(1), [30, 31, 32, 35, 38, 199]);
  assert.deepEqual(few.records.map((_, row) => heldUntil(few, row)), [1, 4, 14, 15, 65, 400]);
  assert.deepEqual(third.records.map((_, row) => heldUntil(third, row)), [31, 32, 35, 38, 39, 200]);
  third.records[5] = 41;
  assert.deepEqual([few, third, lane([]), lane([1], [0])].map(hasGaps), [true, false, false, false]);
  assert.deepEqual(quotient(lane(few.loss, [4, 15, 64], [[1], [2], [3]]), { ...few, values: few.records.map(() => [1]) }).records, [4, 64]);
});

test("a quotient has the records of the first lane that the second one has run", () => {
  const over = lane([1, 1, 1, 1], [0, 1, 3], [[2, 4], [6, 8], [9, 9]]);
  const under = lane([1, 1, 1], [0, 2], [[1, 2], [3, 0]]);
  const { records, values, loss } = quotient(over, under);
  assert.deepEqual([records, values, loss.length], [[0, 1], [[2, 2], [6, 4]], 3]);
});

test("three digits, or words", () => {
  assert.deepEqual([0, 1.6, 904, 1234.6, 123456, 0.00012345, 2.5e-7, 1e9, NaN, Infinity, undefined, null].map(digits),
    ["0", "1.6", "904", "1235", "123456", "0.000123", "2.5e-07", "1e+09", "not finite", "not finite", "", ""]);
});

test("a loss has two decimals where they say something", () => {
  assert.deepEqual([1.6, 0.01, 0, 0.0031, 7.99e-5, 99.991, 904, 5e7, NaN].map(lossWords),
    ["1.60", "0.01", "0", "0.0031", "7.99e-05", "99.99", "904", "5e+07", "not finite"]);
});
