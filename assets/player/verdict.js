// The verdict of a run that was trained in a browser: the rules of normviz/runs/verdict.py, which says why.
// A test judges thousands of curves by both, and compares the sentences.

import { general, lossWords } from "./numbers.js";

const WINDOW = 10, NEAR_CHANCE = 0.03, SOLVED = 0.02, ENOUGH = 20, HALF = 0.5, STILL = 0.02, ERRORS = 2.576;
const TAILS = [2 / 3, 1 / 2, 1 / 3, 1 / 4, 1 / 6], BENT = 3, FAR_ONE = 4, FAR_MEAN = 2;

const sum = (x) => x.reduce((a, b) => a + b, 0);
const mean = (x) => sum(x) / x.length;
const dot = (a, b) => a.reduce((total, x, i) => total + x * b[i], 0);

// Mean of the last tenth of the losses, at least of one.
export function finalLoss(losses) {
  return losses.length ? mean(losses.slice(-Math.max(1, Math.floor(losses.length / 10)))) : NaN;
}

export function divergedVerdict({ step, layer, where }) {
  const at = layer === null ? "in the output head" : `first in layer ${layer}`;
  const began = layer === null ? "" : `; stream blew up ${at}`;
  const words = where === "blow-up" ? `loss above 100 times chance${began}` : `${at} (${where} not finite)`;
  return { kind: "diverged", sentence: `diverged at step ${step}, ${words}`, step };
}

// Python's round: half to even.
function rounded(x) {
  const floor = Math.floor(x), rest = x - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2) ? floor + 1 : floor;
}

// The line through the longest tail on which a line fits; see `Tail` of verdict.py.
function tailOf(losses) {
  const n = losses.length;
  let tail = null, bend = 0;
  for (const share of TAILS) {
    ({ tail, bend } = lineOf(losses, Math.max(ENOUGH, rounded(share * n))));
    if (bend === 0) return tail;
  }
  const { level, fall } = tail;
  return {
    ...tail, level: [level[0], level[1] + bend / ERRORS],
    fall: [fall[0], fall[1] + (3 * bend) / ERRORS * n / 5 / (n - tail.start)],
  };
}

function lineOf(losses, m) {
  const n = losses.length, last = losses.slice(-m);
  const at = Array.from({ length: m }, (_, i) => (i === m - 1 ? 1 : -1 + (2 * i) / (m - 1)));
  const squaresAt = at.map((x) => x * x), middle = mean(squaresAt), curve = squaresAt.map((x) => x - middle);
  const size = dot(at, at), ofCurve = dot(curve, curve);
  const level = mean(last), slope = dot(at, last) / size;
  const rest = last.map((x, i) => x - level - slope * at[i]), squares = dot(rest, rest);
  const noise = Math.sqrt(squares / (m - 2)), bend = dot(curve, rest) / ofCurve;
  const ofBend = Math.sqrt(Math.max(0, squares - bend * bend * ofCurve) / (m - 3) / ofCurve);
  const correlation = squares > 0 ? dot(rest.slice(1), rest) / squares : 0;
  const fits = Math.abs(bend) <= BENT * ofBend && correlation <= BENT / Math.sqrt(m);
  const r = Math.min(Math.max(correlation, 0), 0.9), ofRest = noise * Math.sqrt((1 + r) / (1 - r));
  const ofMean = ofRest / Math.sqrt(m), ofSlope = ofRest / Math.sqrt(size);
  const end = 1 - n / 10 / m, fifth = (2 * n) / 5 / m;
  const tail = {
    start: n - m, level: [level + slope * end, Math.hypot(ofMean, ofSlope * end)], mean: [level, ofMean],
    fall: [-slope * fifth, ofSlope * fifth], noise,
  };
  return { tail, bend: fits ? 0 : Math.abs(bend) * curve.at(-1) };
}

function falls({ fall: [fall, error] }) {
  return fall > ERRORS * error;
}

function isFlat(tail, chance) {
  const fall = tail.fall[0], error = ERRORS * tail.fall[1];
  return Math.abs(fall) + error <= STILL * chance && fall <= error && -fall <= Math.max(error, (STILL / 2) * chance);
}

// The verdict of a run of so many steps that reached its end with finite losses.
export function judge(losses, chance, floor) {
  const final = finalLoss(losses), n = losses.length;
  if (n < ENOUGH) return { kind: "short", sentence: `too short to judge: loss ${lossWords(final)} after ${n} steps`, step: null };
  const tail = tailOf(losses), solved = solvedSince(losses, tail, chance, floor);
  if (solved !== null) return { kind: "solved", sentence: `solved at step ${solved}: loss ${lossWords(final)}`, step: solved };
  const step = atChanceSince(losses, tail, chance), of = `chance ${chance.toFixed(2)}`, loss = `loss ${fixed(final)}`;
  if (step !== null) {
    const kind = wasBelow(losses.slice(0, step), tail, chance) ? "back at chance" : "at chance";
    return { kind, sentence: `${kind} since step ${step}: ${loss}, ${of}`, step };
  }
  const level = tail.level[0], error = tail.level[1] * ERRORS, near = NEAR_CHANCE * chance;
  if (Math.max(level + error, final) < chance - near) {
    return learned(tail, final, chance, floor);
  }
  if (falls(tail)) return { kind: "still falling", sentence: `still falling: ${loss}, ${of}`, step: null };
  if (Math.min(level - error, final) > chance + near) {
    return { kind: "above", sentence: `above chance: loss ${general(final, 4)}, ${of}`, step: null };
  }
  return { kind: "not settled", sentence: `not settled: ${loss}, give or take ${general(error, 2)}, ${of}`, step: null };
}

function solvedSince(losses, tail, chance, floor) {
  if (floor === null) return null;
  const bar = floor + SOLVED * (chance - floor);
  if ([tail.mean, tail.level].some(([value, error]) => value + ERRORS * error > bar)) return null;
  return since(losses, tail, -Infinity, bar);
}

function atChanceSince(losses, tail, chance) {
  const [value, error] = tail.mean, near = NEAR_CHANCE * chance;
  const within = Math.abs(value - chance) + ERRORS * error <= near && Math.abs(tail.level[0] - chance) <= near;
  return within && isFlat(tail, chance) ? since(losses, tail, chance - near, chance + near) : null;
}

// Whether a mean of ten losses was surely below the band at chance.
function wasBelow(losses, tail, chance) {
  const low = chance * (1 - NEAR_CHANCE) - (FAR_ONE * tail.noise) / Math.sqrt(WINDOW);
  for (let end = WINDOW; end <= losses.length; end++) {
    if (mean(losses.slice(end - WINDOW, end)) < low) return true;
  }
  return false;
}

// The first step from which no loss, and no mean of the ten around a step, is outside of a band.
function since(losses, tail, low, high) {
  let first = 0;
  for (const [width, far] of [[1, FAR_ONE], [WINDOW, FAR_MEAN]]) {
    for (let i = losses.length - 1; i >= first; i--) {
      // The window of NumPy's convolve with mode "same".
      const from = Math.max(0, i - Math.floor(width / 2)), to = Math.min(losses.length, i + Math.ceil(width / 2));
      const part = losses.slice(from, to), value = mean(part), slack = (far * tail.noise) / Math.sqrt(part.length);
      if (value < low - slack || value > high + slack) {
        first = i + 1;
        break;
      }
    }
  }
  return first <= tail.start ? first : null;
}

function learned(tail, final, chance, floor) {
  const verdict = (kind, rest) => {
    const fast = falls(tail) && tail.fall[0] > STILL * chance;
    const still = (kind === "learned" ? fast : falls(tail)) ? ", still falling" : "";
    return { kind, sentence: `${kind}: loss ${final.toFixed(2)}, ${rest}${still}`, step: null };
  };
  if (floor === null) return verdict("learned", `chance ${chance.toFixed(2)}`);
  const [level, error] = tail.level, half = chance - HALF * (chance - floor);
  let word = "learned in part";
  if (Math.max(level + ERRORS * error, final) <= half) word = "learned";
  else if (Math.min(level - ERRORS * error, final) > half) word = "learned little";
  const share = (100 * (chance - final)) / (chance - floor);
  return verdict(word, `${share.toFixed(0)}% of the way to the floor`);
}

// Two digits after the point, also where toFixed would change to powers of ten.
function fixed(value) {
  return Math.abs(value) < 1e21 ? value.toFixed(2) : `${BigInt(value)}.00`;
}
