import assert from "node:assert/strict";
import test from "node:test";
import { Cursor } from "../../assets/player/cursor.js";

const cursor = () => {
  const told = [], it = new Cursor(() => told.push(it.step));
  it.last = 100;
  return [it, told];
};

test("a step is pinned within what has run", () => {
  const [it, told] = cursor();
  for (const step of [40, -3, 1e6]) it.pin(step);
  assert.deepEqual(told, [40, 0, 100]);
});

test("pointing shows a step and leaves the pinned one, but not while it plays or follows", () => {
  const [it] = cursor();
  it.pin(40);
  it.point(70);
  assert.equal(it.at, 70);
  it.point(null);
  assert.equal(it.at, 40);
  it.following = true;
  it.point(70);
  assert.equal(it.at, 40);
  it.play();
  it.point(70);
  assert.notEqual(it.at, 70);
});

test("a layer is picked, and dropped when it is picked again", () => {
  const [it] = cursor();
  it.pick(3);
  assert.equal(it.layer, 3);
  it.pick(3);
  assert.equal(it.layer, null);
});

test("a link says where the cursor was left, not where it plays or follows", () => {
  const [it] = cursor();
  it.pin(100);
  assert.deepEqual(it.words, {});
  it.pin(30);
  it.pick(4);
  assert.deepEqual(it.words, { at: 30, layer: 4 });
  it.play();
  assert.deepEqual(it.words, { layer: 4 });
  it.pin(30);
  it.following = true;
  it.pick(4);
  assert.deepEqual(it.words, {});
});

test("a replay is slow first, ends at the last step, and starts over from there", () => {
  const [it] = cursor();
  it.play();
  const { since } = it.playing;
  assert.ok(it.tick(since + 4000));
  assert.equal(it.step, 25);
  it.rate(4);
  assert.equal(Math.round(100 * it.playing.from), 50);
  assert.ok(it.tick(it.playing.since + 60_000));
  assert.deepEqual([it.step, it.playing, it.tick(0)], [100, null, false]);
  it.play();
  assert.equal(it.playing.from, 0);
  it.pause();
  assert.equal(it.playing, null);
});
