// What the player draws: numbers when they come, and what the cursor changes, once a frame at most.

import { paint } from "./heatmap.js";
import { quotient, recordAt } from "./numbers.js";
import { barsAt, heatAt, linesOf, lossAt, seedSets, wholeLoss } from "./rows.js";
import { drawWalk } from "./walk.js";
import { drawWritings } from "./writes.js";

const LONG = 300, TREND = 0.9;  // steps, and the weight of what is one step away
const NARROW = 380;  // pixels
const BUDGET = 8;  // ms of a frame

export const drawing = {
  redraw(what) {
    this.due = this.due === "data" ? "data" : what;
    if (this.asked || this.gone) return;
    this.asked = true;
    requestAnimationFrame((now) => this.frame(now));
  },

  async frame(now) {
    let moves = false;
    try {
      // Charts may be built again while others are awaited.
      for (let built = null; built !== this.building;) await (built = this.building);
      moves = this.cursor.tick(now);
      const data = this.due === "data", charts = Object.values(this.charts);
      this.due = null;
      if (this.gone || !charts.length) return;
      if (charts.some((chart) => !chart.view && !chart.failed)) {
        this.due = "data";  // not yet
        return;
      }
      if (data) this.drawNumbers();
      this.drawCursor();
      this.drawWalks();
      this.drawWords();
      this.controls();
      await this.drawCharts(charts, now);
      if (!this.gone) this.overlays();
      if (!this.shown) globalThis.dispatchEvent?.(new Event("normviz-drawn"));  // takes away the still
      this.shown = true;
    } finally {
      this.asked = false;
      if (moves || this.due) this.redraw(this.due ?? "cursor");
    }
  },

  // Charts that take long are drawn in frames of their own, so that the page stays smooth meanwhile.
  async drawCharts(charts, began) {
    for (const [chart, view] of charts.filter(({ stale }) => stale).map((chart) => [chart, chart.view])) {
      if (performance.now() - began > BUDGET) began = await new Promise(requestAnimationFrame);
      if (this.gone) return;
      if (chart.view !== view) continue;  // a new one, which has no numbers before the next frame
      await chart.draw();
      chart.stale = false;
    }
  },

  // What does not depend on the cursor.
  drawNumbers() {
    const { loss, lines, ratio } = this.charts;
    loss.set(this.wholeCurves());
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
      lines.set({ lines: linesOf(this.lanes) });
      lines.stale = true;
    }
  },

  wholeCurves() {
    const span = this.lanes.map((lane) => lane.about.span);
    return { ...this.sets.loss, ahead: wholeLoss(this.lanes), ...seedSets(this.repeats ?? [], span) };
  },

  // Where the cursor stands on charts over the steps.
  rule() {
    return this.lanes.some((lane) => lane.loss.length) ? [{ step: this.cursor.at }] : [];
  },

  // All rows of a chart at the cursor, as it is drawn: what a saved picture shows.
  rows(name) {
    const { at } = this.cursor, cursor = this.rule();
    if (name === "loss") return { ...this.wholeCurves(), past: lossAt(this.lanes, at, this.trend()), cursor };
    if (name === "bars") return barsAt(this.lanes, at);
    if (name === "lines") return { lines: linesOf(this.lanes), cursor };
    const picture = [{ url: this.charts[name].canvas.toDataURL() }];
    return { bad: [], ...this.sets[name], ...heatAt(this.laneOf(name), at), picture };
  },

  picture(chart, lane, domain, palette, sets) {
    const amount = `${lane.records.length} ${lane.loss.length}`;
    if (chart.drawn === amount) return;
    chart.drawn = amount;
    paint(chart.canvas, lane, domain, palette);
    chart.set({ ...sets, picture: [{ image: chart.canvas }] });
    chart.stale = true;
  },

  // The lane that a heatmap shows.
  laneOf(name) {
    return name === "ratio" ? this.divided : this.lanes[Number(name.slice(4))];
  },

  // The weight of the trend that is drawn over the losses as they were measured; 0 without one.
  trend() {
    const chosen = this.find(".nv-smooth").value;
    return chosen === "auto" ? (this.span > LONG ? TREND : 0) : Number(chosen) || 0;
  },

  // The loss chart's title; shorter in a narrow place, so that it has one line there as well.
  nameLoss() {
    const inNats = this.lanes.some(({ about }) => about.unit?.startsWith("nats"));
    const isNarrow = this.charts.loss.wide < NARROW;  // as measured: to ask here would lay out the page anew
    this.head("loss", isNarrow ? "Loss" : "Training loss", `${inNats ? "nats; " : ""}${this.curves(isNarrow)}`);
  },

  // Which curve is which.
  curves(isShort = false) {
    const trend = this.trend() ? "; thick: trend" : "";
    const circles = `; circles: unseen${isShort || trend ? "" : " data"}`;  // one line beside a trend too
    return `${this.seeds()}${trend}${this.sets.loss?.held_out?.length ? circles : ""}`;
  },

  drawCursor() {
    const at = this.cursor.at, { loss, bars, lines } = this.charts;
    const weight = this.trend();
    const rule = this.rule();
    loss.set({ past: lossAt(this.lanes, at, weight), cursor: rule });
    if (lines) {
      lines.set({ cursor: rule });
      lines.stale = true;
    }
    loss.stale = true;
    const records = String(this.lanes.map((lane) => recordAt(lane, at)));
    if (bars.drawn !== records) {
      bars.drawn = records;
      bars.set(barsAt(this.lanes, at));
      bars.stale = true;
    }
  },

  drawWords() {
    drawWritings(this.find(".nv-writes"), this.lanes, this.cursor, this.topic.dark);
  },

  drawWalks() {
    const hosts = this.root.querySelectorAll(".nv-walk-lane");
    hosts.forEach((host, i) => {
      const lane = this.carried[i], row = recordAt(lane, this.cursor.at), { name, color } = this.lanes[i].about;
      host.querySelector("b").textContent = name;
      host.querySelector("span").textContent = row < 0 ? "" : ` (step ${lane.records[row]})`;
      const values = Object.fromEntries(
        Object.entries(lane.values).map(([probe, rows]) => [probe, rows[row] ?? null]),
      );
      const { domains, plans } = this.plan, { layer } = this.cursor;
      const pick = (picked) => this.cursor.pick(picked);
      drawWalk(host.lastElementChild, plans[i], values, { domains, layer, color, dark: this.topic.dark, pick });
    });
  },

  // Rules over the heatmaps, and the layer that was picked: no chart is drawn again for them.
  overlays() {
    const at = this.cursor.at, { layer } = this.cursor;
    for (const [name, chart] of Object.entries(this.charts)) {
      const lane = chart.canvas && chart.view && this.laneOf(name);
      if (!lane) continue;
      const plot = chart.plot(), x = chart.view.scale("x");
      const { cursor: [rule], ahead: [ahead] } = heatAt(lane, at);
      place(chart.rule, rule, plot.left + x(rule?.step) - 1, plot.top, 2, plot.height);
      const left = x(ahead?.step), right = x(ahead?.end);
      place(chart.veil, ahead, plot.left + left, plot.top, right - left, plot.height);
      const y = chart.view.scale("y"), high = Math.abs(y(1) - y(0));
      const there = layer !== null && layer >= lane.about.first && layer <= lane.about.depth;
      place(chart.band, there, plot.left, plot.top + y(layer ?? 0) - Math.max(high, 3) / 2,
        plot.width, Math.max(high, 3));
    }
    this.label();
    const { bars } = this.charts;
    if (!bars?.view) return;
    const plot = bars.plot(), x = bars.view.scale("x");
    const wide = x.bandwidth ? x.bandwidth() : 3, left = layer === null ? undefined : x(layer);
    place(bars.band, left !== undefined, plot.left + (left ?? 0) - (x.bandwidth ? 0 : 1.5),
      plot.top, wide, plot.height);
  },

  // The numbers at the cursor, beside its rule, where a visitor has moved it.
  label() {
    const { cursor, charts: { loss } } = this, words = this.find(".nv-readout");
    const moved = cursor.hover !== null || (!cursor.playing && !cursor.following && (cursor.step < cursor.last || cursor.layer !== null));
    words.hidden = !moved || !loss?.view || !words.textContent;
    if (words.hidden) return;
    if (words.parentElement !== loss.figure) loss.figure.append(words);
    const plot = loss.plot(), x = loss.view.scale("x")(cursor.at);
    const left = loss.host.offsetLeft + plot.left, isRight = x > plot.width / 2;
    words.style.top = `${loss.host.offsetTop + plot.top + 4}px`;
    words.style.left = isRight ? "" : `${left + x + 8}px`;
    words.style.right = isRight ? `${loss.figure.clientWidth - left - x + 8}px` : "";
  },

  fit() {
    for (const chart of Object.values(this.charts)) chart.fit();
    if (this.charts.loss) this.nameLoss();
    this.redraw("cursor");
  },
};

function place(element, shown, left, top, width, height) {
  element.hidden = !shown;
  if (shown) {
    element.style.transform = `translate(${left}px, ${top}px)`;
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
  }
}
