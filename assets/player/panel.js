// Everything round the charts: controls, captions, words and the table.

import { Chart } from "./chart.js";
import { digits, lossWords, recordAt } from "./numbers.js";
import { captioned, copyPicture, printPicture, savePicture } from "./picture.js";
import { recordedStep } from "./rows.js";

export const PAGE = `
<div class="nv-tabs" role="group" aria-label="Charts">
  <button type="button" value="loss">Loss</button>
  <button type="button" value="layers">Layers at this step</button>
  <button type="button" value="time">Layers over time</button>
</div>
<div class="nv-grid">
<div class="nv-what">
  <label class="nv-field">Quantity <select class="nv-probe"></select></label>
  <p class="nv-definition"></p>
</div>
<div class="nv-bar nv-replay">
  <button type="button" class="nv-play"></button>
  <button type="button" class="nv-back" aria-label="One step back" title="One step back">‹</button>
  <button type="button" class="nv-on" aria-label="One step on" title="One step on">›</button>
  <label class="nv-field nv-step"><span>Step <output></output></span>
    <input type="range" min="0" step="1" value="0" aria-label="Step"></label>
  <div class="nv-progress" hidden><progress max="1"></progress><span role="status"></span></div>
  <label class="nv-field nv-pace">Speed <select class="nv-speed">
    <option value=".25">¼</option><option value=".5">½</option><option value="1" selected>1</option>
    <option value="2">2</option><option value="4">4</option></select></label>
</div>
<div class="nv-bar nv-look">
  <div class="nv-views" role="group" aria-label="Layers"><span>Layers</span></div>
  <label class="nv-check"><input type="checkbox" class="nv-linear"> Linear axes</label>
  <label class="nv-field">Smooth the loss <select class="nv-smooth">
    <option value="auto">above 300 steps</option><option value="0">off</option><option value=".6">a little</option><option value=".9">much</option>
  </select></label>
</div>
</div>
<section class="nv-writes" aria-label="What each lane writes" hidden></section>
<p class="nv-readout" hidden></p>
<details class="nv-table"><summary>Numbers at this step</summary><div></div></details>`;

const AGAIN = 5;  // seconds until a page that did not follow is asked again
const PACE = 3, MEASURED = 2;  // seconds over which the pace is taken, and before it is said
const VIEWS = { heat: "Every layer", ratio: "A ÷ B", lines: "First, middle, last", walk: "Signal walk" };

export const panel = {
  figure(grid, name) {
    const figure = document.createElement("figure");
    figure.className = `nv-${name}`;
    figure.innerHTML = '<figcaption></figcaption><div role="img" tabindex="0"></div>';
    figure.querySelector("div").setAttribute("aria-label", "Training goes on");
    grid.append(figure);
    const chart = new Chart(figure.querySelector("div"));
    chart.figure = figure;
    if (name.startsWith("heat") || name === "ratio") {
      chart.canvas = document.createElement("canvas");
      for (const part of ["veil", "rule", "band"]) {
        chart[part] = document.createElement("i");
        chart[part].className = `nv-${part}`;
        chart.host.append(chart[part]);
      }
    }
    if (name === "bars") {
      chart.band = document.createElement("i");
      chart.band.className = "nv-band";
      chart.host.append(chart.band);
    }
    this.pointer(chart, name);
    return chart;
  },

  // On a phone one kind of chart is shown at a time (see `player.css`).
  tab(name) {
    this.root.dataset.tab = name;
    for (const button of this.root.querySelectorAll(".nv-tabs button")) {
      button.setAttribute("aria-pressed", String(button.value === name));
    }
    this.fit();
  },

  head(name, title, note) {
    const caption = this.charts[name].figure.querySelector("figcaption");
    const said = explained(note), words = `${title} ${note} ${said.length}`;
    if (caption.dataset.words === words) return;
    caption.dataset.words = words;
    caption.replaceChildren(Object.assign(document.createElement("b"), { textContent: title }));
    if (note) caption.append(" (", ...said, ")");
    this.saves(name, caption);
  },

  // What can be done with a chart: "⋯" opens it.
  saves(name, caption) {
    const menu = document.createElement("details"), opens = document.createElement("summary");
    Object.assign(menu, { className: "nv-menu", name: "nv-menu" });
    opens.textContent = "⋯";
    opens.setAttribute("aria-label", "Save, copy or enlarge this chart");
    const list = document.createElement("div");
    const add = (label, words, act, className = "nv-save") => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className, textContent: label });
      button.setAttribute("aria-label", words);
      button.onclick = () => { menu.open = false; act(); };
      list.append(button);
    };
    if (globalThis.navigator?.clipboard?.write) {  // not on a page that is served without TLS
      add("Copy", "Copy this chart as a picture", () => this.save(name, "copy"));
    }
    for (const kind of ["png", "svg"]) {
      const label = kind.toUpperCase();
      add(label, `Save this chart as ${label}`, () => this.save(name, kind));
    }
    add("PDF", "Print this chart, or save it as PDF", () => this.save(name, "pdf"));
    const { figure } = this.charts[name];
    if (figure.requestFullscreen) add("Full screen", "Show this chart on the full screen", () => figure.requestFullscreen(), "");
    menu.addEventListener("focusout", ({ relatedTarget }) => { if (!menu.contains(relatedTarget)) menu.open = false; });
    menu.append(opens, list);
    caption.prepend(menu);
  },

  async save(name, kind) {
    const chart = this.charts[name];
    chart.unsaved?.remove();
    try {
      const { name: duel = "normviz", caption = [] } = this.what;
      const curves = name === "loss" ? [`Training loss, ${this.curves()}.`] : [];
      const spec = captioned(JSON.parse(chart.saved), [...caption, ...curves]), file = `${duel}-${name}-step${this.cursor.at}`;
      if (kind === "copy") await copyPicture(spec, this.rows(name));
      else if (kind === "pdf") await printPicture(spec, this.rows(name), file);
      else await savePicture(spec, this.rows(name), kind, `${file}.${kind}`);
    } catch (problem) {
      chart.unsaved = document.createElement("p");
      chart.unsaved.className = "nv-failed";
      chart.unsaved.setAttribute("role", "alert");
      chart.unsaved.textContent = `This chart can't be saved (${problem?.message ?? problem}).`;
      chart.figure.append(chart.unsaved);
    }
  },

  choices(probes, probe, lacking = "") {
    const select = this.find(".nv-probe");
    select.replaceChildren(...grouped(probes));
    select.value = probe;
    const { title, definition, source } = probes.find((each) => each.key === probe);
    this.title = title;
    this.views();
    this.find(".nv-definition").replaceChildren(`${definition} (`, ...cited(source), ")", lacking && ` ${lacking}`);
  },

  views() {
    const group = this.find(".nv-views"), [a, b] = this.lanes;
    const pair = b && a.about.depth === b.about.depth;
    group.replaceChildren(group.firstElementChild, ...Object.entries(VIEWS).map(([key, words]) => {
      const choice = document.createElement("label"), input = document.createElement("input");
      Object.assign(input, { type: "radio", name: "nv-view", value: key });
      input.checked = key === this.topic.view;
      const walks = this.lanes.every((lane) => lane.about.walks);
      input.disabled = (key === "ratio" && !pair) || (key === "walk" && !walks);
      input.onchange = () => { this.look({ view: key }); this.options.view?.(key); };
      if (input.disabled) {
        choice.title = key === "ratio" ? "Needs two lanes of the same depth" : "Is drawn of blocks with attention and an FFN";
      }
      choice.append(input, words);
      return choice;
    }));
    if (this.topic.view === "ratio" && !pair) {
      group.append("A ÷ B needs two lanes of the same depth: shown is every layer.");
    }
  },

  controls() {
    const { cursor } = this, slider = this.find(".nv-step input"), play = this.find(".nv-play");
    slider.max = this.live ? this.span - 1 : cursor.last;
    if (Number(slider.value) !== cursor.at) slider.value = cursor.at;
    this.find(".nv-step output").textContent = cursor.at;
    // The progress names the step then.
    this.root.classList.toggle("nv-following", Boolean(cursor.following && this.live));
    const words = cursor.playing ? "❚❚ Pause" : "▶ Replay";
    if (play.textContent !== words) play.textContent = words;
    const readout = this.find(".nv-readout"), said = this.readout();
    if (readout.textContent !== said) readout.textContent = said;
    if (this.find(".nv-table").open) this.table();
  },

  // "Step 40 / A Pre-LN loss 1.39, layer 3: 0.211 (step 38) / B Post-LN loss 3.33 (step 35)", in lines.
  readout() {
    const { at, layer } = this.cursor, of = (step) => (step === at ? "" : ` (step ${step})`);
    const losses = this.lanes
      .filter((lane) => lane.loss.length)
      .map((lane) => {
        const step = Math.min(at, lane.loss.length - 1), row = recordAt(lane, at);
        let words = `${lane.about.name} loss ${lossWords(lane.loss[step])}${of(step)}`;
        const value = layer === null || row < 0 ? undefined : lane.values[row][layer - lane.about.first];
        if (value !== undefined) words += `, ${lane.about.row} ${layer}: ${digits(value)}${of(lane.records[row])}`;
        return words;
      });
    return losses.length ? `Step ${at}\n${losses.join("\n")}` : "";
  },

  table() {
    const rows = this.lanes.map((lane) => lane.values[recordAt(lane, this.cursor.at)]);
    const first = Math.min(...this.lanes.map((lane) => lane.about.first));
    const last = Math.max(...this.lanes.map((lane) => lane.about.depth));
    const table = document.createElement("table");
    const step = recordedStep(this.lanes, this.cursor.at);
    table.createCaption().textContent = step ? `${this.title} at ${step}` : `${this.title}: nothing was recorded yet`;
    const head = table.createTHead().insertRow();
    for (const name of [this.lanes[0].about.row, ...this.lanes.map((lane) => lane.about.name)]) {
      head.append(Object.assign(document.createElement("th"), { textContent: name, scope: "col" }));
    }
    const { at } = this.cursor, losses = table.createTHead().insertRow();  // below the names: the same head
    losses.append(Object.assign(document.createElement("th"), { textContent: `loss, step ${at}`, scope: "row" }));
    for (const { loss } of this.lanes) {
      const taken = Math.min(at, loss.length - 1);
      losses.insertCell().textContent = taken < 0 ? "" : lossWords(loss[taken]) + (taken < at ? ` (step ${taken})` : "");
    }
    const body = table.createTBody();
    for (let layer = last; layer >= first; layer--) {
      const row = body.insertRow();
      row.classList.toggle("nv-picked", layer === this.cursor.layer);
      row.append(Object.assign(document.createElement("th"), { textContent: layer, scope: "row" }));
      this.lanes.forEach((lane, i) => {
        row.insertCell().textContent = digits(rows[i]?.[layer - lane.about.first]);
      });
    }
    this.find(".nv-table div").replaceChildren(table);
  },

  // What the lanes' runs are doing.
  status(status) {
    const bar = this.find(".nv-progress");
    bar.hidden = !status.words;
    bar.querySelector("progress").value = status.done / Math.max(1, status.total);
    bar.querySelector("span").textContent = status.words + this.pace(status);
    this.state = status;
    this.compare();
  },

  // Ask for the page again where it shows the runs in another state than they are in: once for each state, and
  // again until the page has caught up, as one that had lost its server did not hear it. Called when either may
  // have changed.
  compare() {
    const { signature, spread } = this.state ?? this.what;
    if (signature === this.what.signature) this.told = null;
    else if (signature !== this.told) {
      this.told = signature;
      const tell = () => {
        this.waits = null;
        clearTimeout(this.again);
        if (this.gone || this.told === null || !this.options.changed) return;
        this.options.changed(this.told);
        this.again = setTimeout(tell, 1000 * (AGAIN + (spread ?? 0) * Math.random()));
      };
      // Where many watch, they don't ask for the page in the same moment, and once for all that changes
      // until then: lanes end soon after one another.
      if (spread) this.waits ??= setTimeout(tell, 1000 * spread * Math.random());
      else tell();
    }
  },

  // ", 75 steps/s, about 3 s left", of the last three seconds in which steps came. What a run waits before its first
  // step, or paused, is no part of it; nothing is said before two seconds were measured: in the
  // first one the page is drawn anew, which takes its share of a small machine.
  pace({ done, total, words }) {
    const now = performance.now() / 1000, counts = /^(Step )?\d/.test(words) && done > 0;
    const last = this.seen?.at(-1);
    if (!counts || last?.total !== total || done < last.done) this.seen = [];
    if (!counts) return "";
    if (done !== this.seen.at(-1)?.done) this.seen.push({ now, done, total });
    while (this.seen.length > 2 && this.seen.at(-1).now - this.seen[1].now >= PACE) this.seen.shift();
    const since = this.seen[0], until = this.seen.at(-1), seconds = until.now - since.now;
    if (seconds < MEASURED) return "";
    const rate = (until.done - since.done) / seconds;
    if (total <= done) return `, ${rate.toFixed(0)} steps/s`;
    return `, ${rate.toFixed(0)} steps/s, about ${((total - done) / rate).toFixed(0)} s left`;
  },

  seeds() {
    const most = Math.max(1, ...(this.repeats ?? []).map((curves) => curves.length));
    return most === 1 ? "1 seed" : `${most} seeds, the first bold`;
  },
};

// The quantities to choose from: those without a group first, the others under their group's heading.
export function grouped(probes) {
  const entries = [];
  for (const { key, label, group } of probes) {
    const option = Object.assign(document.createElement("option"), { textContent: label, value: key });
    const last = entries.at(-1);
    if (!group) entries.push(option);
    else if (last?.label === group) last.append(option);
    else {
      entries.push(Object.assign(document.createElement("optgroup"), { label: group }));
      entries.at(-1).append(option);
    }
  }
  return entries;
}

// "nats" opens its sentence, on a page that has it (`app/widgets/glossary.py`).
export function explained(note) {
  if (!note.startsWith("nats") || !document.getElementById("word-nat")) return [note];
  const word = Object.assign(document.createElement("button"), { type: "button", className: "word", textContent: "nats" });
  word.setAttribute("popovertarget", "word-nat");
  return [word, note.slice(4)];
}

// A source with its arXiv numbers as links; nothing is fetched until a visitor follows one.
export function cited(source) {
  return source.split(/(arXiv:\d{4}\.\d{4,5})/).map((part, i) => (i % 2 === 0 ? part
    : Object.assign(document.createElement("a"), {
      textContent: part, href: `https://arxiv.org/abs/${part.slice(6)}`, target: "_blank",
      rel: "noopener noreferrer",
    })));
}
