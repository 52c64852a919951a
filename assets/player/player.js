// The player: charts and one cursor for all of them, in a place of a page.

import { Cursor } from "./cursor.js";
import { drawing } from "./draw.js";
import { input } from "./input.js";
import { floats, newLane, take } from "./numbers.js";
import { PAGE, panel } from "./panel.js";
import { takeWritings } from "./writes.js";

export { embedded, posted, socket } from "./source.js";

export function mount(root, options) {
  return new Player(root, options);
}

export class Player {
  // options: source; probe(key), view(key), changed(now) and follow() (training began) tell the page.
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

  // what: { topic: { runs, repeats, earlier, probe, view, dark }, which is asked for, start: "follow" |
  //   "replay" | "end", nonce, cursor: { at, layer } of a link, name and caption: [line, ...] of saved charts,
  //   and perhaps begins (training began just now), signature of the runs' states that the page shows,
  //   shortcuts (false: keys act only inside), park, the step at which the replay stops, and tab, what a phone
  //   shows first }.
  update(what) {
    const before = this.what, old = this.topic, text = JSON.stringify;
    this.what = { ...before, ...what };
    this.topic = { linear: false, view: "heat", ...old, ...what.topic };
    // What the page has said before does not undo what was chosen here since.
    for (const name of ["probe", "view"]) {
      if (before && before.topic[name] === what.topic[name]) this.topic[name] = old[name];
    }
    const same = (name) => text(old?.[name]) === text(this.topic[name]), isNew = before?.nonce !== what.nonce;
    if (!same("runs") || !same("repeats")) this.state = null;
    this.compare();
    if (isNew || !same("runs")) this.start = what.start;
    if (isNew) this.tab(what.tab ?? "loss");
    if (isNew && what.begins) {
      this.options.follow?.();
      this.reveal();
    }
    if (!same("runs") || !same("probe")) this.fresh = true;
    if (text(old) !== text(this.topic)) this.ask();
    else if (this.start) this.begin();
  }

  look(change) {
    this.topic = { ...this.topic, ...change };
    this.ask();
  }

  ask() {
    this.options.source.ask(
      () => ({
        ...this.topic,
        have: this.fresh ? [] : this.lanes.map((lane) => [lane.loss.length, lane.records.length]),
      }),
      (message) => this.receive(message),
    );
  }

  receive(message) {
    if (message.status) this.status(message.status);
    if (!message.lanes) return;
    // An answer to an earlier question.
    if (message.view !== this.topic.view) return;
    if (message.probe && message.probe !== this.topic.probe) return;
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
    message.writings?.forEach((fresh, i) => takeWritings(this.lanes[i], fresh));
    if (message.charts) this.build(message);
    this.walk(message);
    this.live = message.live;
    Object.assign(this.sets, message.sets);
    for (const [name, words] of Object.entries(message.findings ?? {})) {
      this.charts[name]?.host.setAttribute("aria-label", words);
    }
    this.fade();
    this.cursor.last = Math.max(0, ...this.lanes.map((lane) => lane.loss.length - 1));
    this.span = Math.max(1, ...this.lanes.map((lane) => lane.about.steps));
    this.nameLoss();
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
        picture.innerHTML = "<figcaption><b></b><span></span></figcaption><div></div>";
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

  // Training began: a visitor who can't see the curves is taken to them.
  reveal() {
    const { top, bottom } = this.find(".nv-grid").getBoundingClientRect();
    if (top < innerHeight * 0.6 && bottom > innerHeight / 4) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.root.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
  }

  // A new duel starts to move, or stands at its end.
  begin() {
    const start = this.start, still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.start = null;
    this.cursor.playing = null;
    this.cursor.hover = null;
    this.cursor.following = start === "follow" && this.live;
    const moves = start === "replay" && !still, park = start === "replay" ? this.what.park : null;
    this.cursor.step = moves ? 0 : Math.min(park ?? this.cursor.last, this.cursor.last);
    const { at, layer } = this.what.cursor ?? {};
    if (layer !== undefined) this.cursor.layer = layer;
    if (at !== undefined && !this.live) this.cursor.step = Math.min(at, this.cursor.last);
    else if (moves && !this.live && park !== 0) this.cursor.play(park ?? undefined);
    this.redraw("data");
  }

  build(message) {
    this.domain = message.domain;
    this.between = message.between;
    this.palette = Uint8Array.from(atob(message.palette), (c) => c.charCodeAt(0));
    this.comparing = Uint8Array.from(atob(message.comparing), (c) => c.charCodeAt(0));
    this.lanes.forEach((lane, i) => { lane.about = message.about[i]; });
    if (message.probes) this.choices(message.probes, message.probe, message.lacking);
    const grid = this.find(".nv-grid"), names = Object.keys(message.charts);
    for (const name of Object.keys(this.charts)) {
      if (names.includes(name)) continue;
      this.charts[name].close();
      this.charts[name].figure.remove();
      delete this.charts[name];
    }
    this.building = Promise.all(names.map((name) => {
      const chart = (this.charts[name] ??= this.figure(grid, name));
      const spec = JSON.stringify(message.charts[name]);
      chart.drawn = null;
      chart.saved = message.saved ? JSON.stringify(message.saved[name]) : spec;
      if (chart.spec === spec) return null;  // only another chart's axis grew
      chart.spec = spec;
      return chart.show(message.charts[name]);
    }));
    grid.classList.toggle("nv-one", this.lanes.length === 1);
    for (const name of names) if (name !== "loss" && name !== "bars") this.head(name, "", "");
    this.head("bars", `${this.title} in each ${this.lanes[0].about.row}`, "");
  }

  // What is of settings that the page shows no more is faded, and saved as no picture.
  fade() {
    this.lanes.forEach(({ about }, i) => {
      const picture = this.root.querySelectorAll(".nv-walk-lane")[i];
      for (const figure of [this.charts[`heat${i}`]?.figure, picture]) figure?.classList.toggle("nv-earlier", about.earlier);
    });
    for (const button of this.root.querySelectorAll(".nv-save")) {
      button.disabled = this.lanes.some(({ about }) => about.earlier);
      button.title = button.disabled ? "Train first: these charts are of earlier settings" : "";
    }
  }

  close() {
    this.gone = true;
    document.removeEventListener("keydown", this.keys);
    document.removeEventListener("click", this.links, true);
    document.removeEventListener("fullscreenchange", this.screen);
    this.resized.disconnect();
    this.options.source.close();
    for (const chart of Object.values(this.charts)) chart.close();
  }
}

Object.assign(Player.prototype, panel, drawing, input);
