// What a visitor does to the player: pointer, keys, controls.

import { enlarged } from "./chart.js";
import { digits, heldUntil, recordAt } from "./numbers.js";

export const input = {
  listen() {
    const { cursor } = this;
    this.find(".nv-play").onclick = () => (cursor.playing ? cursor.pause() : cursor.play());
    this.find(".nv-back").onclick = () => cursor.pin(cursor.step - 1);
    this.find(".nv-on").onclick = () => cursor.pin(cursor.step + 1);
    this.find(".nv-speed").onchange = (event) => cursor.rate(Number(event.target.value));
    this.find(".nv-step input").oninput = (event) => cursor.pin(Number(event.target.value));
    this.find(".nv-probe").onchange = (event) => {
      this.fresh = true;
      this.look({ probe: event.target.value });
      this.options.probe?.(event.target.value);
    };
    this.find(".nv-linear").onchange = (event) => this.look({ linear: event.target.checked });
    this.find(".nv-smooth").onchange = () => {
      this.nameLoss();
      this.redraw("cursor");
    };
    this.find(".nv-table").ontoggle = () => this.redraw("cursor");
    for (const button of this.root.querySelectorAll(".nv-tabs button")) {
      button.onclick = () => this.tab(button.value);
    }
    this.keys = (event) => this.key(event);
    document.addEventListener("keydown", this.keys);
    this.links = (event) => this.follow(event);
    document.addEventListener("click", this.links, true);
    this.screen = () => {  // its padding comes after the event
      const whole = document.fullscreenElement;
      if (this.root.contains(whole)) this.resized.observe(whole);
      this.fit();
    };
    document.addEventListener("fullscreenchange", this.screen);
  },

  // A link "#step-30" of the page sets the cursor.
  follow(event) {
    const step = /^#step-(\d+)$/.exec(event.target.closest?.("a")?.getAttribute("href") ?? "");
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.cursor.pin(Number(step[1]));
  },

  key(event) {
    const busy = "input, textarea, select, [contenteditable], [role=slider], [role=radiogroup], [role=combobox], [role=tablist]";
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest?.(busy)) return;
    // Where a visitor has turned shortcuts off, keys act only inside the player.
    if (this.what?.shortcuts === false && !this.root.contains(event.target)) return;
    const { cursor } = this, leap = event.shiftKey ? 10 : 1;
    const moves = {
      ArrowLeft: () => cursor.pin(cursor.step - leap),
      ArrowRight: () => cursor.pin(cursor.step + leap),
      Home: () => cursor.pin(0),
      End: () => cursor.pin(cursor.last),
      ArrowUp: () => cursor.climb(1, this.layers()),
      ArrowDown: () => cursor.climb(-1, this.layers()),
      " ": () => (cursor.playing ? cursor.pause() : cursor.play()),
      Escape: () => cursor.pick(null),
    };
    if (event.key === " " && event.target.closest?.("button, a, summary")) return;
    if (["Home", "End"].includes(event.key) && !this.root.contains(event.target)) return;
    // Elsewhere they scroll the page.
    if (["ArrowUp", "ArrowDown"].includes(event.key) && !event.target.closest?.(".nv-chart")) return;
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  },

  // The first and the last layer of all lanes.
  layers() {
    const about = this.lanes.map((lane) => lane.about);
    return [Math.min(...about.map(({ first }) => first)), Math.max(...about.map(({ depth }) => depth))];
  },

  // Hovering a chart shows its step on all; a click keeps it, and keeps the layer.
  pointer(chart, name) {
    let down = null;
    const { host } = chart, { cursor } = this;
    const pointed = (event) => {
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
      const { step, layer } = pointed(event);
      if (!event.buttons) cursor.point(step === undefined ? null : Math.min(step, cursor.last));
      this.tip(event, name, step, layer);
    });
    host.addEventListener("pointerleave", () => { cursor.point(null); this.tip(); });
    host.addEventListener("pointerdown", (event) => { down = [event.clientX, event.clientY]; });
    host.addEventListener("click", (event) => {
      if (down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 4) return;
      const { step, layer } = pointed(event);
      if (layer !== undefined) cursor.pick(layer);
      if (step !== undefined) cursor.pin(step);
    });
  },

  tip(event, name, step, layer) {
    const words = step !== undefined && layer !== undefined ? this.cell(name, step, layer) : "";
    this.bubble ??= this.root.appendChild(
      Object.assign(document.createElement("div"), { className: "nv-tip" }),
    );
    this.bubble.hidden = !words;
    if (!words) return;
    this.bubble.textContent = words;
    const by = enlarged(this.bubble);
    const left = Math.min(event.clientX / by + 14, innerWidth / by - this.bubble.offsetWidth - 8);
    this.bubble.style.transform = `translate(${left}px, ${event.clientY / by + 14}px)`;
  },

  cell(name, step, layer) {
    const lane = this.laneOf(name), row = recordAt(lane, step);
    const value = step < heldUntil(lane, row) ? lane.values[row]?.[layer - lane.about.first] : undefined;
    if (value === undefined) return "";
    return `${lane.about.row} ${layer}, step ${lane.records[row]}: ${digits(value)}`;
  },
};
