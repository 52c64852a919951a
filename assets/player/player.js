// The player: controls, charts and one cursor for all of them, in a place of a page.

const PAGE = `
<div class="nv-progress" hidden><progress max="1"></progress><span role="status"></span></div>
<div class="nv-bar">
  <label class="nv-field">Quantity <select class="nv-probe"></select></label>
  <button type="button" class="nv-play"></button>
  <label class="nv-field">Speed <select class="nv-speed">
    <option value=".25">¼</option><option value=".5">½</option><option value="1" selected>1</option>
    <option value="2">2</option><option value="4">4</option></select></label>
  <label class="nv-field nv-step">Step <output></output>
    <input type="range" min="0" step="1" value="0" aria-label="Step"></label>
</div>
<p class="nv-definition"></p>
<p class="nv-readout"></p>
<div class="nv-grid">
<div class="nv-bar nv-look">
  <fieldset class="nv-views"><legend>Layers</legend></fieldset>
  <label class="nv-check"><input type="checkbox" class="nv-linear"> Linear axes</label>
  <label class="nv-field">Smooth the loss <select class="nv-smooth">
    <option value="0">off</option><option value=".8">a little</option><option value=".95">much</option>
  </select></label>
</div>
</div>
<details class="nv-table"><summary>Numbers at this step</summary><div></div></details>`;

const VIEWS = { heat: "Every layer", ratio: "A ÷ B", lines: "First, middle, last", walk: "Signal walk" };

export function mount(root, options) {
  return new Player(root, options);
}

class Player {
  // options: source; probe and pinned(name) to tell the page; changed() when its words are old.
  constructor(root, options) {
    this.root = root;
    this.options = options;
    this.lanes = [];
    this.charts = {};
    this.sets = {};
    this.cursor = new Cursor(() => this.redraw("cursor"));
    root.classList.add("nv");
    root.innerHTML = PAGE;
    this.listen();
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(this.find(".nv-grid"));
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  // what: { runs, repeats, probe, view, dark, start: "follow" | "replay" | "end", nonce }.
  update(what) {
    const before = this.what, same = (name) => String(before?.[name]) === String(what[name]);
    this.what = { linear: false, repeats: [], view: "heat", ...before, ...what };
    if (!before || !same("nonce") || !same("runs")) this.start = what.start;
    if (!same("runs") || !same("probe")) this.fresh = true;
    if (before && ["runs", "repeats", "probe", "view", "dark"].every(same)) {
      if (this.start) this.begin();
      return;
    }
    this.ask();
  }

  look(change) {
    this.what = { ...this.what, ...change };
    this.ask();
  }

  ask() {
    this.options.source.ask(
      () => ({
        runs: this.what.runs,
        repeats: this.what.repeats,
        probe: this.what.probe,
        view: this.what.view,
        linear: this.what.linear,
        dark: this.what.dark,
        have: this.fresh ? [] : this.lanes.map((lane) => [lane.loss.length, lane.records.length]),
      }),
      (message) => this.receive(message),
    );
  }

  receive(message) {
    this.root.classList.toggle("nv-lost", Boolean(message.lost));
    if (message.lost) return;
    if (message.status) this.status(message.status);
    if (!message.lanes) return;
    // An answer to an earlier question.
    if (message.view !== this.what.view) return;
    if (message.probe && message.probe !== this.what.probe) return;
    if (this.fresh && !message.charts) return;
    if (this.fresh || message.lanes.length !== this.lanes.length) {
      this.lanes = message.about.map(newLane);
      this.fresh = false;
    }
    if (!message.lanes.every((fresh, i) => take(this.lanes[i], fresh))) {
      this.fresh = true;
      this.ask();
      return;
    }
    this.repeat(message.repeats ?? []);
    if (message.charts) this.build(message);
    this.walk(message);
    this.live = message.live;
    Object.assign(this.sets, message.sets);
    for (const [name, words] of Object.entries(message.findings ?? {})) {
      this.charts[name]?.host.setAttribute("aria-label", words);
    }
    this.head("loss", "Training loss", `nats per token, ${this.seeds()}`);
    this.cursor.last = Math.max(0, ...this.lanes.map((lane) => lane.loss.length - 1));
    this.span = Math.max(1, ...this.lanes.map((lane) => lane.about.steps));
    if (this.start) this.begin();
    if (this.cursor.following) {
      this.cursor.step = this.cursor.last;
      this.cursor.following = this.live;
    }
    this.redraw("data");
  }

  // Curves from other seeds; counted anew when others are shown.
  repeat(repeats) {
    const shape = repeats.map((curves) => curves.length);
    if (String(shape) !== String(this.repeats?.map((curves) => curves.length))) {
      this.repeats = repeats.map((curves) => curves.map(() => []));
    }
    repeats.forEach((curves, i) => curves.forEach(({ from, loss }, k) => {
      const curve = this.repeats[i][k];
      curve.length = Math.min(curve.length, from);
      for (const value of floats(loss)) curve.push(value);
    }));
  }

  seeds() {
    const most = Math.max(1, ...(this.repeats ?? []).map((curves) => curves.length));
    return most === 1 ? "1 seed" : `${most} seeds, the first bold`;
  }

  // The signal walk: a picture a lane, and the probes that it carries.
  walk(message) {
    const grid = this.find(".nv-grid");
    if (message.walk) this.plan = message.walk;
    const count = message.view === "walk" && this.plan ? this.plan.plans.length : 0;
    const pictures = [...grid.querySelectorAll(".nv-walk-lane")];
    if (pictures.length !== count) {
      pictures.forEach((picture) => picture.remove());
      this.carried = [];
      for (let i = 0; i < count; i++) {
        const picture = Object.assign(document.createElement("figure"), { className: "nv-walk-lane" });
        picture.innerHTML = "<figcaption><b></b></figcaption><div></div>";
        grid.append(picture);
        this.carried.push({ records: [], values: {} });
      }
    }
    (message.carried ?? []).forEach((fresh, i) => {
      const lane = this.carried[i];
      lane.records.length = fresh.from;
      lane.records.push(...fresh.records);
      for (const [probe, text] of Object.entries(fresh.values)) {
        const rows = (lane.values[probe] ??= []), all = floats(text);
        rows.length = fresh.from;
        const width = fresh.records.length ? all.length / fresh.records.length : 0;
        fresh.records.forEach((_, k) => rows.push(all.subarray(k * width, (k + 1) * width)));
      }
    });
  }

  drawWalks() {
    const hosts = this.root.querySelectorAll(".nv-walk-lane");
    hosts.forEach((host, i) => {
      const lane = this.carried[i], row = recordAt(lane, this.cursor.at), { name, color } = this.lanes[i].about;
      host.querySelector("b").textContent = name;
      const values = Object.fromEntries(
        Object.entries(lane.values).map(([probe, rows]) => [probe, rows[row] ?? null]),
      );
      const { domains, plans } = this.plan, { layer } = this.cursor;
      const pick = (picked) => this.cursor.pick(picked);
      drawWalk(host.lastElementChild, plans[i], values, { domains, layer, color, dark: this.what.dark, pick });
    });
  }

  // A new duel starts to move, or stands at its end.
  begin() {
    const start = this.start, still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.start = null;
    this.cursor.playing = null;
    this.cursor.hover = null;
    this.cursor.following = start === "follow" && this.live;
    this.cursor.step = start === "replay" && !still ? 0 : this.cursor.last;
    if (start === "replay" && !still && !this.live) this.cursor.play();
    this.redraw("data");
  }

  build(message) {
    this.domain = message.domain;
    this.between = message.between;
    this.palette = Uint8Array.from(atob(message.palette), (c) => c.charCodeAt(0));
    this.comparing = Uint8Array.from(atob(message.comparing), (c) => c.charCodeAt(0));
    this.lanes.forEach((lane, i) => { lane.about = message.about[i]; });
    if (message.probes) this.choices(message.probes, message.probe);
    const grid = this.find(".nv-grid"), names = Object.keys(message.charts);
    for (const name of Object.keys(this.charts)) {
      if (names.includes(name)) continue;
      this.charts[name].close();
      this.charts[name].figure.remove();
      delete this.charts[name];
    }
    this.building = Promise.all(names.map((name) => {
      this.charts[name] ??= this.figure(grid, name);
      return this.charts[name].show(message.charts[name]);
    }));
    grid.classList.toggle("nv-one", this.lanes.length === 1);
    for (const name of names) if (name !== "loss" && name !== "bars") this.head(name, "", "");
    this.head("bars", `${this.title} in each layer`, "");
  }

  head(name, title, note) {
    const caption = this.charts[name].figure.querySelector("figcaption");
    const words = `${title} ${note}`;
    if (caption.dataset.words === words) return;
    caption.dataset.words = words;
    caption.replaceChildren(Object.assign(document.createElement("b"), { textContent: title }));
    if (note) caption.append(` (${note})`);
    this.saves(name, caption);
  }

  // "PNG SVG": the chart as it is now, from the server; a file from disk has none.
  saves(name, caption) {
    if (!this.options.pictures) return;
    for (const kind of ["svg", "png"]) {  // they float to the right
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "nv-save", textContent: kind.toUpperCase() });
      button.setAttribute("aria-label", `Save this chart as ${kind.toUpperCase()}`);
      button.onclick = () => {
        const { runs, probe, dark, linear } = this.what, address = new URL(this.options.pictures);
        const asked = { runs: runs.map((run) => run ?? ""), probe, dark, linear, chart: name, kind,
                        cursor: this.cursor.at };
        address.search = new URLSearchParams(asked);
        Object.assign(document.createElement("a"), { href: address, download: "" }).click();
      };
      caption.append(" ", button);
    }
  }

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
  }

  choices(probes, probe) {
    const select = this.find(".nv-probe");
    select.replaceChildren(...probes.map((one) => new Option(one.label, one.key)));
    select.value = probe;
    const { label, definition, source } = probes.find((one) => one.key === probe);
    this.title = label;
    this.views();
    this.find(".nv-definition").replaceChildren(`${definition} (`, ...cited(source), ")");
  }

  views() {
    const group = this.find(".nv-views"), pair = this.lanes.length > 1;
    group.replaceChildren(group.firstElementChild, ...Object.entries(VIEWS).map(([key, words]) => {
      const choice = document.createElement("label"), input = document.createElement("input");
      Object.assign(input, { type: "radio", name: "nv-view", value: key });
      input.checked = key === this.what.view;
      input.disabled = key === "ratio" && !pair;
      input.onchange = () => { this.look({ view: key }); this.options.view?.(key); };
      choice.append(input, words);
      return choice;
    }));
  }

  // Drawing

  redraw(what) {
    this.due = this.due === "data" ? "data" : what;
    if (this.asked || this.gone) return;
    this.asked = true;
    requestAnimationFrame((now) => this.frame(now));
  }

  async frame(now) {
    await this.building;
    const moves = this.cursor.tick(now), data = this.due === "data";
    this.due = null;
    if (this.charts.loss?.view && !this.gone) {
      if (data) this.drawNumbers();
      this.drawCursor();
      this.drawWalks();
      this.controls();
      await Promise.all(Object.values(this.charts).map((chart) => chart.stale && chart.draw()));
      for (const chart of Object.values(this.charts)) chart.stale = false;
      this.overlays();
      this.options.drawn?.();
    }
    this.asked = false;
    if (moves || this.due) this.redraw(this.due ?? "cursor");
  }

  // What does not depend on the cursor.
  drawNumbers() {
    const { loss, lines, ratio } = this.charts, bottom = this.domain.loss[0];
    loss.set({
      ...this.sets.loss,
      ahead: wholeLoss(this.lanes, bottom),
      ...seedSets(this.repeats ?? [], this.lanes.map((lane) => lane.about.steps), bottom),
    });
    loss.stale = true;
    this.lanes.forEach((lane, i) => {
      const chart = this.charts[`heat${i}`];
      if (chart) this.picture(chart, lane, this.domain, this.palette, this.sets[`heat${i}`]);
    });
    if (ratio) {
      this.divided = quotient(this.lanes[0], this.lanes[1]);
      this.picture(ratio, this.divided, this.between, this.comparing, {});
    }
    if (lines) {
      lines.set({ lines: linesOf(this.lanes, this.domain) });
      lines.stale = true;
    }
  }

  picture(chart, lane, domain, palette, sets) {
    const amount = `${lane.records.length} ${lane.loss.length}`;
    if (chart.drawn === amount) return;
    chart.drawn = amount;
    paint(chart.canvas, lane, domain, palette);
    chart.set({ ...sets, picture: [{ image: chart.canvas }] });
    chart.stale = true;
  }

  // The lane that a heatmap shows.
  laneOf(name) {
    return name === "ratio" ? this.divided : this.lanes[Number(name.slice(4))];
  }

  drawCursor() {
    const at = this.cursor.at, { loss, bars, lines } = this.charts;
    const weight = Number(this.find(".nv-smooth").value);
    const some = this.lanes.some((lane) => lane.loss.length);
    const rule = some ? [{ step: at }] : [];
    loss.set({ ...lossAt(this.lanes, at, this.domain.loss[0], weight), cursor: rule });
    if (lines) {
      lines.set({ cursor: rule });
      lines.stale = true;
    }
    loss.stale = true;
    const records = String(this.lanes.map((lane) => recordAt(lane, at)));
    if (bars.drawn !== records) {
      bars.drawn = records;
      bars.set(barsAt(this.lanes, at, this.domain));
      bars.stale = true;
    }
  }

  // Rules over the heatmaps, and the layer that was picked: no chart is drawn again for them.
  overlays() {
    const at = this.cursor.at, { layer } = this.cursor;
    for (const [name, chart] of Object.entries(this.charts)) {
      const lane = chart.canvas && this.laneOf(name);
      if (!lane) continue;
      const plot = chart.plot(), x = chart.view.scale("x");
      const known = knownSteps(lane), from = x(Math.min(at, lane.about.steps - 1));
      place(chart.rule, known > 0, plot.left + from - 1, plot.top, 2, plot.height);
      const left = x(at + 0.5), right = x(known - 0.5);
      place(chart.veil, right > left, plot.left + left, plot.top, right - left, plot.height);
      const y = chart.view.scale("y"), high = Math.abs(y(1) - y(0));
      const there = layer !== null && layer >= lane.about.first && layer <= lane.about.depth;
      place(chart.band, there, plot.left, plot.top + y(layer ?? 0) - Math.max(high, 3) / 2,
        plot.width, Math.max(high, 3));
    }
    const { bars } = this.charts, plot = bars.plot(), x = bars.view.scale("x");
    const wide = x.bandwidth ? x.bandwidth() : 3, left = layer === null ? undefined : x(layer);
    place(bars.band, left !== undefined, plot.left + (left ?? 0) - (x.bandwidth ? 0 : 1.5),
      plot.top, wide, plot.height);
  }

  controls() {
    const { cursor } = this, slider = this.find(".nv-step input"), play = this.find(".nv-play");
    slider.max = this.live ? this.span - 1 : cursor.last;
    if (Number(slider.value) !== cursor.at) slider.value = cursor.at;
    this.find(".nv-step output").textContent = cursor.at;
    const words = cursor.playing ? "❚❚ Pause" : "▶ Replay";
    if (play.textContent !== words) play.textContent = words;
    this.find(".nv-readout").textContent = this.readout();
    if (this.find(".nv-table").open) this.table();
  }

  // "Step 64: A Pre-LN 1.39, B Post-LN 3.33"
  readout() {
    const { at, layer } = this.cursor;
    const losses = this.lanes
      .filter((lane) => lane.loss.length)
      .map((lane) => {
        const step = Math.min(at, lane.loss.length - 1), row = recordAt(lane, at);
        let words = `${lane.about.name} loss ${digits(lane.loss[step])}`;
        const value = layer === null || row < 0 ? undefined : lane.values[row][layer - lane.about.first];
        if (value !== undefined) words += `, layer ${layer}: ${digits(value)}`;
        return words;
      });
    return losses.length ? `Step ${at} · ${losses.join(" · ")}` : "";
  }

  table() {
    const rows = this.lanes.map((lane) => lane.values[recordAt(lane, this.cursor.at)]);
    const first = Math.min(...this.lanes.map((lane) => lane.about.first));
    const last = Math.max(...this.lanes.map((lane) => lane.about.depth));
    const table = document.createElement("table");
    table.createCaption().textContent = `${this.title} at step ${this.cursor.at}`;
    const head = table.createTHead().insertRow();
    for (const name of ["layer", ...this.lanes.map((lane) => lane.about.name)]) {
      head.append(Object.assign(document.createElement("th"), { textContent: name, scope: "col" }));
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
  }

  // What the lanes' runs are doing.
  status(status) {
    const bar = this.find(".nv-progress");
    bar.hidden = !status.words;
    bar.querySelector("progress").value = status.done / Math.max(1, status.total);
    bar.querySelector("span").textContent = status.words + this.pace(status);
    if (status.signature !== this.what.signature && status.signature !== this.told) {
      this.told = status.signature;
      this.options.changed?.(status.signature);
    }
  }

  // ", 75 steps/s, about 3 s left", from the last three seconds.
  pace({ done, total, words }) {
    const now = performance.now() / 1000;
    this.seen ??= [];
    if (this.seen.length && done < this.seen.at(-1)[1]) this.seen = [];
    this.seen.push([now, done]);
    while (now - this.seen[0][0] > 3 && this.seen.length > 2) this.seen.shift();
    const [since, before] = this.seen[0], rate = (done - before) / (now - since);
    if (!/^\d/.test(words) || now - since < 0.2 || !(rate > 0)) return "";
    return `, ${rate.toFixed(0)} steps/s, about ${((total - done) / rate).toFixed(0)} s left`;
  }

  // Hands

  listen() {
    const { cursor } = this;
    this.find(".nv-play").onclick = () => (cursor.playing ? cursor.pause() : cursor.play());
    this.find(".nv-speed").onchange = (event) => cursor.rate(Number(event.target.value));
    this.find(".nv-step input").oninput = (event) => cursor.pin(Number(event.target.value));
    this.find(".nv-probe").onchange = (event) => {
      this.update({ ...this.what, probe: event.target.value });
      this.options.probe?.(event.target.value);
    };
    this.find(".nv-linear").onchange = (event) => this.look({ linear: event.target.checked });
    this.find(".nv-smooth").onchange = () => this.redraw("cursor");
    this.find(".nv-table").ontoggle = () => this.redraw("cursor");
    this.keys = (event) => this.key(event);
    document.addEventListener("keydown", this.keys);
  }

  key(event) {
    const busy = "input, textarea, select, [contenteditable], [role=slider], [role=radiogroup], [role=combobox], [role=tablist]";
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest?.(busy)) return;
    const { cursor } = this, leap = event.shiftKey ? 10 : 1;
    const moves = {
      ArrowLeft: () => cursor.pin(cursor.step - leap),
      ArrowRight: () => cursor.pin(cursor.step + leap),
      Home: () => cursor.pin(0),
      End: () => cursor.pin(cursor.last),
      " ": () => (cursor.playing ? cursor.pause() : cursor.play()),
      Escape: () => cursor.pick(null),
    };
    if (event.key === " " && event.target.closest?.("button, a, summary")) return;
    if (["Home", "End"].includes(event.key) && !this.root.contains(event.target)) return;
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  // Hovering a chart shows its step on all; a click keeps it, and keeps the layer.
  pointer(chart, name) {
    let down = null;
    const { host } = chart, { cursor } = this;
    const found = (event) => {
      if (!chart.view) return {};
      const { x, y, inside } = chart.place(event);
      if (!inside) return {};
      const across = chart.view.scale("x");
      if (name === "bars") {
        const layer = across.bandwidth
          ? across.domain().find((l) => x >= across(l) && x <= across(l) + across.bandwidth())
          : Math.round(across.invert(x));
        return { layer };
      }
      const step = Math.max(0, Math.round(across.invert(x)));
      return !chart.canvas ? { step } : { step, layer: Math.round(chart.view.scale("y").invert(y)) };
    };
    host.addEventListener("pointermove", (event) => {
      const { step, layer } = found(event);
      if (!event.buttons) cursor.point(step === undefined ? null : Math.min(step, cursor.last));
      this.tip(event, name, step, layer);
    });
    host.addEventListener("pointerleave", () => { cursor.point(null); this.tip(); });
    host.addEventListener("pointerdown", (event) => { down = [event.clientX, event.clientY]; });
    host.addEventListener("click", (event) => {
      if (down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 4) return;
      const { step, layer } = found(event);
      if (layer !== undefined) cursor.pick(layer);
      if (step !== undefined) cursor.pin(step);
    });
  }

  tip(event, name, step, layer) {
    const words = step !== undefined && layer !== undefined ? this.cell(name, step, layer) : "";
    this.bubble ??= this.root.appendChild(
      Object.assign(document.createElement("div"), { className: "nv-tip" }),
    );
    this.bubble.hidden = !words;
    if (!words) return;
    this.bubble.textContent = words;
    const left = Math.min(event.clientX + 14, innerWidth - this.bubble.offsetWidth - 8);
    this.bubble.style.transform = `translate(${left}px, ${event.clientY + 14}px)`;
  }

  cell(name, step, layer) {
    const lane = this.laneOf(name), row = recordAt(lane, step);
    const value = step < knownSteps(lane) ? lane.values[row]?.[layer - lane.about.first] : undefined;
    if (value === undefined) return "";
    return `layer ${layer}, step ${lane.records[row]}: ${digits(value)}`;
  }

  fit() {
    for (const chart of Object.values(this.charts)) chart.fit();
    this.redraw("cursor");
  }

  close() {
    this.gone = true;
    document.removeEventListener("keydown", this.keys);
    this.resized.disconnect();
    this.options.source.close();
    for (const chart of Object.values(this.charts)) chart.close();
  }
}

function place(element, shown, left, top, width, height) {
  element.hidden = !shown;
  if (shown) {
    element.style.transform = `translate(${left}px, ${top}px)`;
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
  }
}

// A source with its arXiv numbers as links; nothing is fetched until a visitor follows one.
function cited(source) {
  return source.split(/(arXiv:\d{4}\.\d{4,5})/).map((part, i) => (i % 2 === 0 ? part
    : Object.assign(document.createElement("a"), {
      textContent: part, href: `https://arxiv.org/abs/${part.slice(6)}`, target: "_blank",
      rel: "noopener noreferrer",
    })));
}

function digits(value) {
  if (value === undefined || value === null) return "";
  if (!Number.isFinite(value)) return "not finite";
  return value === 0 ? "0" : String(Number(value.toPrecision(3)));
}
