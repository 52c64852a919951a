// One chart: a Vega view that stays while its numbers change, and is replaced unseen when its axes do.
// Where Vega can't make the view, a sentence stands in its place, and the other charts go on.

const CONTAINER = "container_width";  // the legends' columns depend on it

const BESIDE = 200;  // pixels of a full screen that are not the plot's height

// The spec for a place of that width.
export function fitted(spec, width) {
  const params = spec.params?.map((param) => param.name === CONTAINER ? { ...param, value: width } : param);
  return { ...spec, ...(params && { params }), width };
}

// By how much the page enlarges it (see `present` in the app's style sheet).
export const enlarged = (element) => element.currentCSSZoom ?? 1;

export class Chart {
  constructor(host) {
    this.host = host;
    this.view = null;
    host.classList.add("nv-chart");
  }

  async show(spec) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const room = this.host.appendChild(document.createElement("div"));
    room.style.display = this.view ? "none" : "";
    let view = null, problem = null;
    try {
      ({ view } = await globalThis.normvizVega.vegaEmbed(room, fitted(spec, this.width()), {
        mode: "vega-lite", renderer: "canvas", actions: false, defaultStyle: false, patch: withCanvas,
        tooltip: enlarged(this.host) === 1,  // Vega's would be of another place
      }));
    } catch (error) {
      problem = error;
    }
    if (turn !== this.turn) {  // axes changed again meanwhile, or the chart went
      view?.finalize();
      room.remove();
      return;
    }
    if (problem) {
      room.remove();
      this.fail(problem);
      return;
    }
    this.failed?.remove();
    this.failed = null;
    this.host.hidden = false;
    this.retired?.();
    const before = this.view;
    this.height = view.height();
    view.width(this.width());
    if (before) keepZoom(before, view);
    this.view = view;
    this.drawn = null;
    this.retired = () => { this.room?.remove(); before?.finalize(); room.style.display = ""; this.room = room; this.retired = null; };
    if (!before) this.retired();
  }

  // Beside the host, whose role is that of a picture: a screen reader would not read it there.
  fail(problem) {
    this.clear();
    this.host.hidden = true;
    this.failed ??= document.createElement("p");
    this.failed.className = "nv-failed";
    this.failed.setAttribute("role", "alert");
    this.failed.textContent = `This chart can't be drawn (${problem?.message ?? problem}): reload the page.`;
    this.host.after(this.failed);
  }

  width() {
    this.wide = Math.max(160, Math.floor(this.host.clientWidth || 400));
    return this.wide;
  }

  set(sets) {
    for (const [name, rows] of Object.entries(sets)) this.view?.data(name, rows);
  }

  async draw() {
    await this.view?.runAsync();
    this.retired?.();  // the new view has its numbers: the old one may go
  }

  // On the full screen a chart is as high as there is room, beside its head, legend and axis.
  fit() {
    if (!this.view) return;
    const width = this.width(), isWhole = document.fullscreenElement?.contains(this.host);
    const height = isWhole ? Math.max(this.height, innerHeight / enlarged(this.host) - BESIDE) : this.height;
    if (this.view.width() !== width) this.view.signal(CONTAINER, width).width(width);
    else if (this.view.height() === height) return;
    this.view.height(height).runAsync();
  }

  // Plot coordinates of a pointer: { x, y, inside }.
  place(event) {
    const box = this.room.querySelector("canvas").getBoundingClientRect();
    const [left, top] = this.view.origin(), padding = this.view.padding();
    const by = enlarged(this.host);
    const x = (event.clientX - box.left) / by - left - padding.left;
    const y = (event.clientY - box.top) / by - top - padding.top;
    const size = this.plot();
    return { x, y, inside: x >= 0 && y >= 0 && x <= size.width && y <= size.height };
  }

  // The plot in pixels of the host.
  plot() {
    const [left, top] = this.view.origin(), padding = this.view.padding();
    const [from, to] = this.view.scale("x").range();
    return {
      left: left + padding.left,
      top: top + padding.top,
      width: Math.abs(to - from),
      height: this.view.height(),
    };
  }

  close() {
    this.turn = -1;
    this.clear();
    this.failed?.remove();
    this.host.replaceChildren();
  }

  clear() {
    this.retired?.();
    this.view?.finalize();
    this.room?.remove();
    this.view = this.room = null;
  }
}

// A heatmap's picture is a canvas instead of an address: nothing to decode, so nothing blinks.
function withCanvas(plan) {
  for (const mark of marksOf(plan)) {
    if (mark.type !== "image") continue;
    delete mark.encode.update.url;
    mark.encode.update.image = { field: "image" };
  }
  return plan;
}

function* marksOf(node) {
  for (const mark of node.marks ?? []) {
    yield mark;
    yield* marksOf(mark);
  }
}

// A chart whose axes grow keeps the part that the visitor looks at.
function keepZoom(before, after) {
  for (const name of ["loss_zoom_step", "loss_zoom_loss"]) {
    try {
      const domain = before.signal(name);
      if (Array.isArray(domain)) after.signal(name, domain);
    } catch { /* a chart without zoom */ }
  }
}
