import assert from "node:assert/strict";
import test from "node:test";
import { newLane } from "../../assets/player/numbers.js";
import { drawWritings, shades, takeWritings, writingAt } from "../../assets/player/writes.js";
import { element } from "./dom.js";

const bytes = (...values) => Buffer.from(values).toString("base64");
const writing = (step, text, ...looks) => ({ step, prompt: "a⏎b", text, looks: bytes(...looks) });

// Two blocks; the first looks at the first character, the last one at the others alike.
const LOOKS = [255, 0, 0, 0, 180, 180];

function laneOf(name, ...fresh) {
  const lane = newLane({ name, earlier: false });
  takeWritings(lane, { from: 0, fresh });
  return lane;
}

test("a lane takes what was written since, or anew, and the cursor finds the last by its step", () => {
  const lane = laneOf("A", writing(0, "xy", ...LOOKS), writing(12, "to", ...LOOKS));
  assert.deepEqual([0, 11, 12, 90].map((at) => writingAt(lane, at).text), ["xy", "xy", "to", "to"]);
  takeWritings(lane, { from: 1, fresh: [writing(12, "so"), writing(50, "it")] });
  assert.deepEqual(lane.writings.map((each) => each.text), ["xy", "so", "it"]);
  assert.equal(writingAt(newLane({}), 3), undefined);
});

test("the prompt is shaded by the layer that was picked, by default the last", () => {
  const { writings: [it] } = laneOf("A", writing(0, "xy", ...LOOKS));
  assert.deepEqual(shades(it, null), [{ text: "a", look: 0, share: 0 }, { text: "⏎b", look: 1, share: 50 }]);
  assert.deepEqual(shades(it, 1), [{ text: "a", look: 1, share: 100 }, { text: "⏎b", look: 0, share: 0 }]);
  assert.deepEqual(shades(it, 9), shades(it, 2));
  assert.deepEqual(shades({ ...it, looks: new Uint8Array() }, 1), [{ text: "a⏎b", look: 0, share: null }]);
});

test("each lane's prompt and what follows stand at the cursor's step, with a caption in words", () => {
  const place = element("section"), lanes = [laneOf("A Pre-LN", writing(0, "xy", ...LOOKS), writing(12, "to", ...LOOKS)), laneOf("B Post-LN", writing(0, "zz", ...LOOKS))];
  drawWritings(place, lanes, { at: 20, layer: null }, false);
  const words = () => place.children.flatMap((child) => [child, ...child.all()]).map((it) => it.textContent).filter(Boolean);
  assert.deepEqual(words(), ["A prompt, and in bold how each model goes on. Where the last character looks, layer 2: darker is more.",
    "A Pre-LN", "a", "⏎b", "to", "B Post-LN", "a", "⏎b", "zz"]);
  assert.deepEqual(place.children[1].children[0].children[1], " (step 12)");
  assert.deepEqual(place.children[1].children[1].children.map((it) => [it.tag, it.title]), [["span", "0 %"], ["span", "50 %"], ["b", undefined]]);
  const drawn = place.children;
  drawWritings(place, lanes, { at: 30, layer: null }, false);
  assert.equal(place.children, drawn);
  drawWritings(place, lanes, { at: 0, layer: 1 }, true);
  assert.match(words()[0], /layer 1: brighter is more/);
  assert.deepEqual(words().slice(1, 5), ["A Pre-LN", "a", "⏎b", "xy"]);
  drawWritings(place, [newLane({ name: "A" })], { at: 0, layer: null }, false);
  assert.equal(place.hidden, true);
});
