import assert from "node:assert/strict";
import test from "node:test";
import { general } from "../../assets/player/numbers.js";
import { divergedVerdict, finalLoss, judge } from "../../assets/player/verdict.js";

// The rule itself is compared with Python's in test_trained.py.
test("a run has the verdict of its curve", () => {
  const at = (f) => Array.from({ length: 200 }, (_, i) => f(i) + 0.01 * Math.sin(7 * i));
  assert.equal(judge(at(() => 3.319), 3.319, 1.1).kind, "at chance");
  assert.equal(judge(at((i) => 1.3 + 2 * Math.exp(-i / 10)), 3.319, 1.1).sentence, "learned: loss 1.30, 91% of the way to the floor");
  assert.equal(judge([1, 2], 3.319, null).sentence, "too short to judge: loss 2.00 after 2 steps");
  assert.equal(finalLoss([]), NaN);
});

test("a divergence names its layer", () => {
  assert.equal(divergedVerdict({ step: 4, layer: null, where: "blow-up" }).sentence, "diverged at step 4, loss above 100 times chance");
  assert.equal(divergedVerdict({ step: 4, layer: 2, where: "blow-up" }).sentence, "diverged at step 4, loss above 100 times chance; stream blew up first in layer 2");
  assert.equal(divergedVerdict({ step: 4, layer: 2, where: "gradient" }).sentence, "diverged at step 4, first in layer 2 (gradient not finite)");
});

test("numbers are written as Python's g does", () => {
  assert.deepEqual([1.2345, 0.00001234, 123456, 0.1, 0, NaN].map((x) => general(x, 3)), ["1.23", "1.23e-05", "1.23e+05", "0.1", "0", "nan"]);
});
