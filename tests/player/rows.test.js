import assert from "node:assert/strict";
import test from "node:test";
import { barsAt, heatAt, keptSteps, linesOf, lossAt, recordedStep, seedSets, smoothed, wholeLoss } from "../../assets/player/rows.js";
import { lane } from "./dom.js";

const long = () => {
  const loss = Array(5000).fill(2);
  loss[1234] = 904;
  loss[2345] = 0.9;
  loss[3456] = NaN;
  return lane(loss);
};

test("long curves are thinned, and keep their extremes and what is not finite", () => {
  const kept = keptSteps(long());
  assert.ok(kept.length < 1300);
  assert.deepEqual(kept, [...new Set(kept)].sort((a, b) => a - b));
  assert.deepEqual([0, 1234, 2345, 3456, 4999].filter((step) => !kept.includes(step)), []);
  assert.equal(keptSteps(lane(Array(300).fill(1))).length, 300);
});

test("points stay where they are as others arrive", () => {
  const { loss, about } = long();
  const part = keptSteps({ loss: loss.slice(0, 2500), about });
  const whole = keptSteps({ loss, about });
  assert.deepEqual(part.filter((step) => step < 2400), whole.filter((step) => step < 2400));
});

test("the curve ends at the cursor, thinned or not, and the whole one does not", () => {
  const lanes = [lane([3, 2, 1]), lane([4, NaN])];
  assert.deepEqual(lossAt(lanes, 1), [
    { step: 0, loss: 3, lane: 0 }, { step: 1, loss: 2, lane: 0 },
    { step: 0, loss: 4, lane: 1 }, { step: 1, loss: NaN, lane: 1 }]);
  assert.equal(lossAt([long()], 777).at(-1).step, 777);
  assert.equal(wholeLoss(lanes).length, 5);
  assert.deepEqual(lossAt([lane([])], 5), []);
});

const near = (a, b) => Math.abs(Math.log(a / b)) < 1e-9;

test("smoothing is the mean of logarithms on both sides, cut off by the ends and by what is not finite", () => {
  const [first, second, third, gap, zero, ...rest] = smoothed([1, 100, 1, NaN, 0, 7, 7], 0.5);
  assert.ok(near(first, 100 ** (0.5 / 1.75)) && near(second, 100 ** 0.5) && near(third, first));
  assert.ok(Number.isNaN(gap) && zero === 0 && rest.every((value) => near(value, 7)));
  assert.deepEqual([smoothed([], 0.9), smoothed([Infinity], 0.9)], [[], [Infinity]]);
  const [, { loss }] = lossAt([lane([1, 100, 1])], 1, 0.5);
  assert.ok(near(loss, second), "the part up to the cursor knows what follows");
});

test("a smoothed fall stays at its step", () => {
  for (const weight of [0.6, 0.9]) {
    const found = smoothed(Array.from({ length: 400 }, (_, step) => (step < 200 ? 4 : 1)), weight);
    assert.ok(found[199] > 2 && found[200] < 2 && near(found[199] * found[200], 4), "halfway between both");
    assert.ok(near(found[0], 4) && near(found[399], 1));
    assert.ok(found.every((loss, step) => !step || loss < found[step - 1] * (1 + 1e-12)));
  }
});

test("a smoothed curve stays at the held-out points that it falls along", () => {
  const at = (step) => 1 + 2.5 * Math.exp(-step / 25), noise = (step) => Math.exp(0.2 * Math.sin(2.4 * step));
  const found = smoothed(Array.from({ length: 300 }, (_, step) => at(step) * noise(step)), 0.9);
  for (let step = 19; step < 300; step += 20) {
    const apart = found[step] / at(step);
    assert.ok(apart > 0.95 && apart < 1.05, `step ${step}: ${found[step]}, held-out ${at(step)}`);
  }
});

test("repeats are curves, and a band where all of a lane have run and are finite", () => {
  const { seeds, band } = seedSets([[[3, 2, NaN, 1], [4, 1, 1]], [[5]]], [4, 4]);
  assert.deepEqual(seeds.filter(({ lane: of, seed }) => of === 0 && seed === 1).map(({ loss }) => loss), [4, 1, 1]);
  assert.equal(seeds.length, 8);
  assert.deepEqual(band, [{ step: 0, loss: 3, highest: 4, lane: 0 }, { step: 1, loss: 1, highest: 2, lane: 0 }]);
});

test("lines are of the last, the middle and the first layer", () => {
  const it = lane([1], [0], [[10, 20, 30, 40, 50]]);
  assert.deepEqual(linesOf([it]), [
    { step: 0, value: 50, lane: 0, which: 0, dot: false }, { step: 0, value: 30, lane: 0, which: 1, dot: false },
    { step: 0, value: 10, lane: 0, which: 2, dot: false }]);
  const few = lane(Array(400).fill(1), [0, 64, 399], [[1, 2], [3, 4], [5, 6]]);
  assert.ok(linesOf([few]).every(({ dot }) => dot), "few records are seen as such");
});

test("bars are what was last recorded, as it was recorded", () => {
  const a = lane([1, 1, 1], [0, 2], [[1, NaN], [3, Infinity]]), b = lane([1], [0], [[0, 7]], { name: "B Post-LN", short: "B" });
  const { bars, note } = barsAt([a, b], 2);
  assert.deepEqual(bars.map(({ layer, lane: of, value }) => [layer, of, value]), [[1, 0, 3], [2, 0, Infinity], [1, 1, 0], [2, 1, 7]]);
  assert.equal(bars[2].name, "B Post-LN");
  assert.deepEqual(note, [{ text: "step 2 (B: step 0)" }]);
  assert.deepEqual(barsAt([a], 1).note, [{ text: "step 0" }]);
  assert.deepEqual(barsAt([lane([])], 1), { bars: [], note: [] });
});

test("the step of the layers is the recorded one", () => {
  const a = lane([1], [0, 35, 38]), b = lane([1], [0, 32, 35], [], { short: "B" });
  assert.equal(recordedStep([a, b], 40), "step 38 (B: step 35)");
  assert.equal(recordedStep([a, b], 37), "step 35");
  assert.equal(recordedStep([lane([1])], 3), "");
});

test("the rule is at the cursor, and the veil over what follows it", () => {
  const it = lane([1, 1, 1, 1], [0, 1, 2, 3], [[1], [1], [1], [1]]);
  assert.deepEqual(heatAt(it, 1), { cursor: [{ step: 1 }], ahead: [{ step: 1.5, end: 3.5 }] });
  assert.deepEqual(heatAt(it, 9), { cursor: [{ step: 3 }], ahead: [] });
  assert.deepEqual(heatAt(lane([]), 0), { cursor: [], ahead: [] });
});
