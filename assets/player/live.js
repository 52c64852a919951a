// A page that trains: two lanes in two workers, with the same player as everywhere.

import { decoded, hasSimd } from "./tape.js";
import { trained } from "./trained.js";
import { peakAt } from "./training.js";
import { divergedVerdict, judge } from "./verdict.js";

const AHEAD = 16;  // steps that the workers may be ahead of the slower one
const OF_LANE = ["scheme", "norm", "init", "depth", "lr", "warmup", "dropout"], SHARED = ["task", "steps"];
const IN_APP = "/normviz/live/live.html";  // where the app serves this page; see app/asgi/live_page.py
// In the order of the app's links.
const FIELDS = ["scheme", "norm", "init", "depth", "task", "steps", "lr", "warmup", "dropout", "init_seed", "data_seed"];
const NUMBERS = ["depth", "lr", "warmup", "dropout", "steps", "init_seed", "data_seed"];

// ------------------------------------------------------------------ links

// The settings of both lanes as the query of a link, as normviz/links.py writes it.
export function linkOf(lanes, pinned) {
  const pairs = ["v=1"], laneWords = FIELDS.map((name) => [name, lanes.map((lane) => wordOf(name, lane[name]))]);
  if (laneWords.every(([, [a, b]]) => a === b)) pairs.push("lanes=2");
  for (const [name, words] of laneWords) {
    const word = words[0] === words[1] ? words[0] : words.join(",");
    if (word !== pinned[name]) pairs.push(`${name}=${encodeURIComponent(word).replaceAll("%2C", ",")}`);
  }
  return pairs.join("&");
}

// "0.003", "10.0", "1e-05": numbers with a point as Python writes them.
function wordOf(name, value) {
  if (name !== "lr" && name !== "dropout") return String(value);
  const [mantissa, power] = value.toExponential().split("e"), e = Number(power);
  if (e < -4) return `${mantissa}e-${String(-e).padStart(2, "0")}`;
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

// The settings of a link, { lanes, problems }: what it does not name is as pinned, and what this page does
// not train is a sentence.
export function settingsOf(query, { pinned, offered, variants }) {
  const params = new URLSearchParams(query), problems = [];
  for (const name of params.keys()) {
    if (name in pinned && !FIELDS.includes(name) && params.get(name) !== pinned[name]) {
      problems.push(`the link names ${name}, which this page does not offer: open it in the app`);
    }
  }
  const lanes = [0, 1].map((i) => Object.fromEntries(FIELDS.map((name) => {
    const words = (params.get(name) ?? pinned[name]).split(","), word = words[Math.min(i, words.length - 1)];
    return [name, NUMBERS.includes(name) ? Number(word) : word];
  })));
  for (const lane of lanes) problems.push(...problemsOf(lane, offered, variants));
  return { lanes, problems: [...new Set(problems)] };
}

// What is wrong with a lane's settings: a sentence each.
function problemsOf(lane, offered, variants) {
  const problems = FIELDS.flatMap((name) => {
    const value = lane[name], allowed = offered[name];
    if (Array.isArray(allowed)) {
      return allowed.some(({ key }) => key === value) ? []
        : [`${name} is ${value}, this page offers ${allowed.map(({ key }) => key).join(", ")}`];
    }
    const { low, high, whole, above, below } = allowed;
    const isGood = (whole ? Number.isInteger(value) : Number.isFinite(value)) && (above ? value > low : value >= low) && (below ? value < high : value <= high);
    const end = below ? `, below ${high}` : `${above ? ", up" : ""} to ${high}`;
    return isGood ? [] : [`${name} is ${value}, allowed is ${whole ? "a whole number" : "a number"} ${above ? "above" : "from"} ${low}${end}`];
  });
  if (problems.length) return problems;
  const what = { "-prose": "with prose", "-dropout": "with dropout", "-prose-dropout": "with prose and dropout" }[variantOf(lane)];
  const norms = variants[variantOf(lane)], depths = norms[lane.norm];
  if (!depths) return [`norm is ${lane.norm}, ${what} this page offers ${Object.keys(norms).join(", ")}`];
  return depths.includes(lane.depth) ? []
    : [`depth is ${lane.depth}, ${what ?? `with the norm ${lane.norm}`} this page offers ${depths.join(", ")}`];
}

// Which kind of model a lane has, as `variant` of normviz/browser/link.py.
function variantOf({ task, dropout }) {
  return (task === "prose" ? "-prose" : "") + (dropout > 0 ? "-dropout" : "");
}

// ------------------------------------------------------------------ files

// What was packed by gzip: JSON, or bytes.
const inflated = (bytes) => new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
export const unpacked = async (bytes) => JSON.parse(await inflated(bytes).text());
const unpackedBytes = async (bytes) => new Uint8Array(await inflated(bytes).arrayBuffer());

export function bytesOf(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

// ------------------------------------------------------------------ the page

export async function live(root, page) {
  const missing = [[!hasSimd(), "WebAssembly with SIMD"], [typeof Worker !== "function", "workers"],
    [typeof DecompressionStream !== "function", "decompression"]].filter(([lacks]) => lacks).map(([, what]) => what);
  const data = missing.includes("decompression") ? null : await unpacked(bytesOf(page.packed));
  return new Live(root, page, data, missing).begin();
}

export class Live {
  constructor(root, page, data, missing) {
    Object.assign(this, { root, page, data, missing, workers: [], duel: null, plays: false, granted: 0 });
    // What the player shows: a finished duel that ships, or what is trained here.
    this.source = { ask: (...a) => this.current?.ask(...a), close() {} };
    this.player = globalThis.normvizPlayer.mount(root.querySelector("#player"), { source: this.source });
    this.count = 0;
  }

  find(selector) { return this.root.querySelector(selector); }

  begin() {
    if (this.missing.length) {
      this.lacks = `This browser can't train here: it lacks ${this.missing.join(" and ")}. Finished duels replay without it.`;
      this.say("");
      this.find("#settings").hidden = true;
      if (!this.data) return this;
    }
    this.form();
    const { lanes, problems } = settingsOf(location.search || this.data.first, this.data);
    this.put(problems.length ? settingsOf(this.data.first, this.data).lanes : lanes);
    if (problems.length) this.say(`${problems.join(". ")}.`);
    return this;
  }

  say(words) {
    this.find("#problem").textContent = words || (this.lacks ?? "");
  }

  // ---- the settings

  form() {
    const { offered, titles } = this.data;
    const field = (name, id) => {
      const label = document.createElement("label"), allowed = offered[name];
      label.append(titles[name] ?? name);
      const input = document.createElement(Array.isArray(allowed) ? "select" : "input");
      Object.assign(input, { id, name: id });
      if (Array.isArray(allowed)) {
        input.append(...allowed.map(({ key, label: words }) => Object.assign(document.createElement("option"), { value: key, textContent: words })));
      } else Object.assign(input, { inputMode: "decimal", autocomplete: "off" });
      label.append(input);
      return label;
    };
    for (const i of [0, 1]) {
      const [scheme, ...rest] = OF_LANE.map((name) => field(name, `${name}${i}`));
      scheme.firstChild.textContent = `Lane ${"AB"[i]}`;
      this.find("#pair").append(scheme);
      this.find(`#lane${i}`).append(...rest);
    }
    for (const name of [...SHARED, "seed"]) this.find("#shared").append(field(name, name));
    this.find("#settings").addEventListener("change", () => this.changed());
    this.find("#settings").addEventListener("submit", (event) => { event.preventDefault(); this.train(); });
    this.find("#pause").onclick = () => this.pause();
    this.find("#step").onclick = () => this.stepOnce();
    this.find("#stop").onclick = () => this.stop();
    this.find("#rate").addEventListener("change", () => this.rate());
  }

  put(lanes) {
    lanes.forEach((lane, i) => {
      for (const name of OF_LANE) this.find(`#${name}${i}`).value = lane[name];
    });
    for (const name of SHARED) this.find(`#${name}`).value = lanes[0][name];
    this.find("#seed").value = lanes[0].init_seed;
    this.changed();
  }

  // The settings in the form, { lanes, problems }.
  get() {
    const lanes = [0, 1].map((i) => {
      const value = (id, name) => {
        const text = this.find(`#${id}`).value.trim();
        return NUMBERS.includes(name) ? (text === "" ? NaN : Number(text)) : text;
      };
      const lane = Object.fromEntries(OF_LANE.map((name) => [name, value(`${name}${i}`, name)]));
      for (const name of SHARED) lane[name] = value(name, name);
      lane.init_seed = lane.data_seed = value("seed", "init_seed");
      return lane;
    });
    return { lanes, problems: [...new Set(lanes.flatMap((lane) => problemsOf(lane, this.data.offered, this.data.variants)))] };
  }

  changed() {
    const { lanes, problems } = this.get();
    this.say(problems.length ? `${problems.join(". ")}.` : "");
    if (problems.length) return;
    const query = linkOf(lanes, this.data.pinned);
    this.find("#link").textContent = `?${query}`;
    const app = this.find("#app");
    app.hidden = !location.pathname.endsWith(IN_APP);  // a page of a folder does not know the app's address
    app.href = `../../?${query}`;
    this.parts(lanes).catch(() => {});  // Train says what is wrong
    this.offer();
    try {
      history.replaceState(null, "", `?${query}${location.hash}`);
    } catch { /* an address that can't carry them, as of a page in a frame */ }
  }

  // ---- what is shown

  // What is shown for the settings of the form: finished duels that ship replay at once, and charts of other
  // settings are faded.
  async offer() {
    const { lanes, problems } = this.get();
    if (this.duel?.isLive || problems.length) return;
    const query = linkOf(lanes, this.data.pinned), name = this.page.shipped[query];
    if (name && query !== this.made) {
      this.made = query;
      await this.replay(name, query);
      return;
    }
    const isEarlier = Boolean(this.shown) && query !== this.made;
    if (this.shown && this.shown.lanes[0].earlier !== isEarlier) {
      for (const lane of this.shown.lanes) lane.earlier = isEarlier;
      this.player.ask();
    }
    if (isEarlier) this.note("Charts and verdicts are of earlier settings. Press Train.");
    else this.note(this.shown ? this.about : "Press Train: both lanes train on this device.");
  }

  async replay(name, query) {
    let content;
    try {
      content = await unpacked(await this.file(name));
    } catch (error) {
      this.say(`The finished duel can't be loaded: ${error.message}.`);
      return;
    }
    if (this.made !== query || this.duel?.isLive) return;  // other settings since
    const { lanes, walk, verdicts, name: title, caption } = content, { templates } = this.data;
    this.show({ lanes: lanes.map((lane) => finished(lane, templates)), templates, isLive: false, status: null, walk },
      { start: "replay", name: title, caption });
    this.verdicts(verdicts, "A finished duel, which ships with NormViz.");
    this.offer();
  }

  // Gives the player a duel.
  show(duel, what) {
    this.shown = duel;
    this.current = trained(duel);
    const { probe = "grad_block", view = "heat" } = this.player.topic ?? {};
    const topic = { runs: [this.count += 1], probe, view, dark: false };
    this.player.update({ topic, nonce: this.count, ...what });
  }

  chips(words) { [0, 1].forEach((i) => { this.find(`#verdict${i}`).textContent = words[i]; }); }

  verdicts(words, note) {
    this.chips(words);
    this.about = note;
    this.note(note);
  }

  // ---- training

  async file(name) {
    const inside = this.page.files?.[name];
    if (inside) return bytesOf(inside);
    const answer = await fetch(name);
    if (!answer.ok) throw new Error(`${name} can't be loaded (${answer.status})`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  // The module, and the models of the lanes; each file is loaded once. It is there before Train is pressed,
  // where the network allows.
  async parts(lanes) {
    this.kept ??= {};
    const once = async (name, made) => {
      this.kept[name] ??= await made(await this.file(name));
      return this.kept[name];
    };
    const models = lanes.map(async (lane) => (await once(`model-${lane.scheme}-${lane.norm}${variantOf(lane)}.bin`, unpacked))[lane.depth]);
    const task = { ...this.data.tasks[lanes[0].task] };
    if (task.key === "prose") task.codes = await once(this.page.prose, unpackedBytes);
    return Promise.all([once(this.page.wasm, (bytes) => bytes), task, ...models]);
  }

  async train() {
    const { lanes, problems } = this.get();
    if (problems.length) return;
    this.stop();
    this.say("");
    this.note("Loading");
    try {
      const [wasm, task, ...models] = await this.parts(lanes);
      this.start(lanes, wasm, task, models);
    } catch (error) {
      this.say(`Training can't begin: ${error.message}.`);
    }
  }

  start(lanes, wasm, task, models) {
    const { data } = this, names = namesOf(lanes, data);
    this.granted = 0;
    this.plays = true;
    this.startedAt = performance.now();
    this.made = linkOf(lanes, data.pinned);
    this.duel = {
      templates: data.templates, isLive: true, status: null, walk: models.map(({ walk }) => walk),
      lanes: lanes.map((lane, i) => {
        const { chance, floor } = task;
        return { name: names[i], short: "AB"[i], scheme: lane.scheme, depth: lane.depth, steps: lane.steps, chance, floor,
          edits: [], loss: [], heldOut: [], records: [], bad: null, at: 0, isOver: false, bytes: 0, speed: 1 };
      }),
    };
    this.url ??= URL.createObjectURL(new Blob([this.page.worker], { type: "text/javascript" }));
    this.workers = lanes.map((lane, i) => {
      const worker = new Worker(this.url), of = this.duel;
      worker.onmessage = ({ data: message }) => { if (this.duel === of) this.receive(i, message); };
      worker.onerror = (event) => this.say(`Lane ${"AB"[i]} has stopped: ${event.message}.`);
      const settings = { lr: lane.lr, edits: [], warmup: lane.warmup, schedule: "constant", steps: lane.steps, beta1: 0.9, beta2: 0.999, weightDecay: 0, clip: null, dataSeed: lane.data_seed };
      worker.postMessage({ open: { wasm, model: models[i], task, settings, start: { init: lane.init, initSeed: lane.init_seed, dropout: lane.dropout } } });
      return worker;
    });
    this.peak = lanes.map((lane) => lane.lr);
    this.find("#rate").value = this.peak[0] === this.peak[1] ? this.peak[0] : "";
    this.verdicts(["training", "training"], "");
    this.show(this.duel, { start: "follow", begins: true, name: "normviz-trained-on-this-device",
      caption: [`${names.join(" against ")}, trained on this device`] });
    this.buttons();
  }

  receive(i, { ready, bytes, rows, at, isOver, ms, error }) {
    const lane = this.duel.lanes[i];
    if (error) {
      this.say(`Lane ${"AB"[i]} has stopped: ${error}.`);
      this.stop();
      return;
    }
    if (ready) {
      lane.ready = true;
      lane.bytes = bytes;
    }
    for (const { step, loss, layers, heldOut, bad } of rows ?? []) {
      lane.loss.push(loss);
      if (layers) lane.records.push({ step, layers });
      if (heldOut !== null) lane.heldOut.push([step, heldOut]);
      if (bad) lane.bad = bad;
    }
    if (rows) Object.assign(lane, { at, isOver, speed: rows.length });
    const { lanes } = this.duel;
    if (lanes.every((lane) => lane.isOver)) {
      this.plays = false;
      this.duel.isLive = false;
      this.seconds = (performance.now() - this.startedAt) / 1000;
      this.end(lanes.map(verdictOf), "Both lanes were trained on this device.");
    } else if (this.plays && lanes.every((lane) => lane.ready)) {
      const open = lanes.filter((lane) => !lane.isOver), ahead = Math.max(AHEAD, 3 * Math.max(...open.map((lane) => lane.speed)));
      this.grant(Math.min(...open.map((lane) => lane.at)) + ahead);
    }
    this.draw();
  }

  // The player draws at most ten times a second.
  draw() {
    const { duel } = this;
    if (this.due || !duel) return;
    this.due = setTimeout(() => {
      this.due = null;
      if (this.duel !== duel) return;
      const { lanes } = duel, total = Math.max(...lanes.map((lane) => lane.steps));
      const done = Math.min(...lanes.map((lane) => (lane.isOver ? lane.steps : lane.at)));  // of the lane that is behind
      const words = duel.isLive ? `Step ${Math.max(0, done - 1)} of ${total}${this.plays ? "" : ", paused"}` : "";
      duel.status = { words, done, total };
      this.current.changed?.();
      this.buttons();
    }, 100);
  }

  grant(until) {
    if (until <= this.granted) return;
    this.granted = until;
    for (const worker of this.workers) worker.postMessage({ until });
  }

  pause() {
    this.plays = !this.plays;
    if (this.plays) this.grant(this.granted + AHEAD);
    this.draw();
    this.buttons();
  }

  stepOnce() {
    this.plays = false;
    this.grant(this.granted + 1);
    this.draw();
  }

  // A new peak rate from the first step that no lane has begun, the same step in both.
  rate() {
    const lr = Number(this.find("#rate").value), { above, low, high } = this.data.offered.lr;
    if (!(Number.isFinite(lr) && (above ? lr > low : lr >= low) && lr <= high)) {
      this.say(`the learning rate is ${this.find("#rate").value}, allowed is a number above ${low}, up to ${high}.`);
      return;
    }
    this.say("");
    if (!this.duel?.isLive) return;
    this.duel.lanes.forEach((lane, i) => {
      if (peakAt({ lr: this.peak[i], edits: lane.edits }, this.granted) === lr) return;
      lane.edits.push([this.granted, lr]);
      this.workers[i].postMessage({ edit: [this.granted, lr] });
    });
    this.draw();
  }

  stop() {
    for (const worker of this.workers) worker.terminate();
    this.workers = [];
    if (this.duel?.isLive) {
      this.duel.isLive = false;
      this.plays = false;
      this.end(this.duel.lanes.map((lane) => (lane.isOver ? verdictOf(lane) : `stopped after ${lane.loss.length} steps`)), "Trained on this device, and stopped.");
      this.draw();
    }
    this.buttons();
  }

  end(verdicts, note) {
    for (const worker of this.workers) worker.terminate();
    this.workers = [];
    this.verdicts(verdicts, note);
    this.offer();
  }

  note(words) { this.find("#note").textContent = words; }

  buttons() {
    const isLive = Boolean(this.duel?.isLive);
    for (const id of ["pause", "step", "stop", "rate"]) this.find(`#${id}`).disabled = !isLive;
    if (isLive) this.chips(Array(2).fill(this.plays ? "training" : "paused"));
    this.find("#pause").textContent = isLive && !this.plays ? "Go on" : "Pause";
  }
}

// A lane of a finished duel that ships: its numbers are packed.
export function finished(lane, { probes }) {
  const [at, heldOut] = lane.heldOut, losses = [...decoded(heldOut)], columns = Object.entries(lane.layers).map(([key, text]) => [key, decoded(text)]);
  const records = lane.records.map((step, i) => ({
    step,
    layers: Object.fromEntries(columns.map(([key, all]) => {
      const width = all.length / lane.records.length, row = [...all.subarray(i * width, (i + 1) * width)];
      const isCosine = probes.find((probe) => probe.key === key)?.shown === "one_minus";
      return [key, key === "update_ratio" && row.every(Number.isNaN) ? null : isCosine ? row.map((x) => 1 - x) : row];
    })),
  }));
  return { ...lane, loss: [...decoded(lane.loss)], heldOut: at.map((step, i) => [step, losses[i]]), records };
}

function verdictOf({ bad, loss, chance, floor }) {
  return (bad ? divergedVerdict(bad) : judge(loss, chance, floor)).sentence;
}

// "A Pre-LN, depth 24": the placement, and what else differs between the lanes.
export function namesOf(lanes, { offered, titles }) {
  const differ = OF_LANE.slice(1).filter((name) => lanes[0][name] !== lanes[1][name]);
  return lanes.map((lane, i) => {
    const label = offered.scheme.find(({ key }) => key === lane.scheme).label;
    const words = (name) => {
      const choice = offered[name].find?.(({ key }) => key === lane[name])?.label;
      return name === "norm" ? choice : name === "init" ? `${choice} init` : `${titles[name]} ${lane[name]}`;
    };
    return [`${"AB"[i]} ${label}`, ...differ.map(words)].join(", ");
  });
}
