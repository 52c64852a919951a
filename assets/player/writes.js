// What each lane writes at the cursor, and where the last character of its prompt looks, as text.

import { recordAt } from "./numbers.js";

// Adds what came, as `fresh` writings from place `from` on.
export function takeWritings(lane, { from, fresh }) {
  lane.writings.length = Math.min(lane.writings.length, from);
  for (const each of fresh) lane.writings.push({ ...each, looks: Uint8Array.from(atob(each.looks), (c) => c.charCodeAt(0)) });
}

// The last writing at or before the cursor, undefined where there is none.
export function writingAt({ writings }, cursor) {
  return writings[recordAt({ records: writings.map(({ step }) => step) }, cursor)];
}

// [{ text, look, share }, ...]: the characters of the prompt, their shade from 0 to 1 and the weight of the layer that
// they have, in percent; neighbours with the same shade are one. Without attention all is one.
export function shades({ prompt, looks }, layer) {
  const letters = [...prompt], T = letters.length, last = looks.length / T;
  if (!last) return [{ text: prompt, look: 0, share: null }];
  const row = looks.subarray((Math.min(layer ?? last, last) - 1) * T).subarray(0, T), most = Math.max(1, ...row);
  const parts = [];
  letters.forEach((text, i) => {
    const look = Math.round((10 * row[i]) / most) / 10, share = Math.round(100 * (row[i] / 255) ** 2);
    const before = parts.at(-1);
    if (before?.look === look && before.share === share) before.text += text;
    else parts.push({ text, look, share });
  });
  return parts;
}

export function drawWritings(place, lanes, { at, layer }, dark) {
  const now = lanes.map((lane) => writingAt(lane, at)), picked = layer ? layer : null;
  place.hidden = !now.some(Boolean);
  const key = JSON.stringify([now.map((each) => each && [each.step, each.prompt, each.text]), picked, dark, lanes.map(({ about }) => [about.name, about.earlier])]);
  if (place.hidden || place.drawn === key) return;
  place.drawn = key;
  const depths = new Set(now.filter((each) => each?.looks.length).map((each) => each.looks.length / [...each.prompt].length));
  const which = picked ? `layer ${picked}` : depths.size === 1 ? `layer ${[...depths][0]}` : "the last layer";
  const looks = depths.size ? ` Where the last character looks, ${which}: ${dark ? "brighter" : "darker"} is more.` : "";
  place.replaceChildren(
    worded("p", `A prompt, and in bold how each model goes on.${looks}`),
    ...now.map((each, i) => (each ? drawWriting(each, lanes[i].about, picked) : worded("div", ""))),
  );
}

function drawWriting(writing, { name, earlier }, layer) {
  const box = worded("div", ""), head = worded("div", ""), text = worded("p", "");
  const parts = shades(writing, layer).map(({ text: words, look, share }) => {
    const part = worded("span", words);
    part.style.setProperty("--nv-look", look);
    if (share !== null) part.title = `${share} %`;
    return part;
  });
  text.append(...parts, worded("b", writing.text));
  head.append(worded("b", name), ` (step ${writing.step}${earlier ? ", of earlier settings" : ""})`);
  box.className = "nv-written";
  box.append(head, text);
  return box;
}

function worded(tag, textContent) {
  return Object.assign(document.createElement(tag), { textContent });
}
