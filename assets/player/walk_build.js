// The parts of the signal walk that stay: blocks, wires, norms, names, legend (walk.js moves the rest).

const WALK_NS = "http://www.w3.org/2000/svg";
export const WALK_WIDE = 38;

function walkNode(parent, tag, attributes = {}, text = "") {
  const node = parent.appendChild(document.createElementNS(WALK_NS, tag));
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text) node.textContent = text;
  return node;
}

export function buildWalk(host, plan) {
  host.classList.add("nv-walk");
  host.replaceChildren();
  const examples = plan.detailed ? [] : plan.kinds;
  const legend = plan.height + examples.reduce((high, kind) => high + kind.height + 26, 0);
  const svg = walkNode(host, "svg", {
    viewBox: `0 0 ${plan.width} ${legend + 84}`, role: "img", tabindex: 0,
  });
  svg.classList.toggle("nv-walk-off", !plan.normed);
  const words = host.appendChild(document.createElement("p"));
  words.className = "nv-walk-words";
  if (plan.words) {
    const note = host.appendChild(document.createElement("p"));
    note.className = "nv-walk-note";
    note.textContent = plan.words;
  }
  const view = { host, plan, svg, words, hover: null, backs: [], boxes: [] };
  view.blocks = plan.nodes.filter((node) => node.kind === "block");
  view.mark = walkNode(svg, "rect", { class: "nv-walk-mark", x: 0.5, width: plan.width - 1, rx: 3 });
  const under = walkNode(svg, "g");
  view.arrows = ["stream", "gradient"].map((kind) => buildArrow(view, svg, kind));
  const over = walkNode(svg, "g");
  for (const block of view.blocks) buildBlock(view, under, over, block);
  buildEnds(view, over);
  view.labels = view.arrows.map(() => Array.from({ length: 6 }, () => walkNode(svg, "text", { class: "nv-walk-value" })));
  let y = plan.height;
  for (const kind of examples) y = buildExample(view, kind, y);
  view.legend = buildLegend(view, legend);
  return view;
}

// What goes through the stack as one wide arrow: the stream up, or its gradient down.
function buildArrow(view, svg, kind) {
  const { plan } = view, up = kind === "stream";
  const edges = plan.edges.filter((edge) => edge.kind === kind);
  const group = walkNode(svg, "g", { class: up ? "nv-walk-up" : "nv-walk-down" });
  const x = up ? plan.x.up : plan.x.down;
  const ends = plan.nodes.filter((node) => node.kind === "embed" || node.kind === "head");
  const arrow = {
    edges, x, up, probe: edges[0].probe, copies: plan.streams.copies,
    low: ends[0].y, high: ends[1].y + ends[1].height,
    norms: streamNorms(view),
  };
  for (let i = 1; up && i <= plan.streams.history; i++) {
    const side = x - WALK_WIDE / 2 - 2.5 * i;
    walkNode(group, "path", { class: "nv-walk-history", d: `M${side} ${arrow.low}V${arrow.high}` });
  }
  for (const part of ["flow", "lost", "bad", "tips", "cuts", "bars"]) {
    arrow[part] = walkNode(group, "path", { class: `nv-walk-${part}` });
  }
  if (!plan.detailed) arrow.bars.setAttribute("style", `stroke-width: ${Math.min(3, 0.2 * plan.rows.height)}px`);
  return arrow;
}

// Where norms stand on the stream, as y: the gradient passes them too. Rows without room show one.
function streamNorms(view) {
  const { plan } = view, bars = plan.nodes.filter((node) => node.kind === "norm").map((node) => node.y);
  for (const block of view.blocks) {
    const inside = plan.kinds[block.of].nodes.filter((node) => node.kind === "norm" && node.at === "stream");
    if (plan.detailed) bars.push(...inside.map((node) => block.y + node.y));
    else if (inside.length) bars.push(block.y - plan.rows.height / 2);
  }
  return bars;
}

function buildBlock(view, under, over, block) {
  const { plan } = view, high = plan.rows.height, [left, right] = plan.x.box;
  const number = (every) => block.layer % every === 0 || block.layer === plan.depth || block.first === 1;
  if (number(plan.detailed ? 1 : Math.ceil(14 / high) * plan.rows.group)) {
    walkNode(over, "text", { class: "nv-walk-number", x: 2, y: block.y - high / 2 + 3.5 }, String(block.layer));
  }
  if (plan.detailed) {
    const parts = buildInside(plan, plan.kinds[block.of], under, over, block.y);
    view.backs.push(parts.back);
    view.boxes.push(parts);
    return;
  }
  const y = block.y - high / 2;
  view.backs.push(walkNode(under, "path", { class: "nv-walk-back", d: `M${left} ${y}H${plan.x.up}` }));
  walkNode(under, "path", { class: "nv-walk-taken", d: `M${plan.x.down} ${y}H${right}` });
  const box = walkNode(over, "rect", {
    class: "nv-walk-box", x: left, y: block.y - high + 0.4, width: right - left, height: high - 0.8, rx: Math.min(3, high / 4),
  });
  view.boxes.push({ box });
}

// A block with all that stands in it, `bottom` being the y of its lower edge.
function buildInside(plan, kind, under, over, bottom) {
  const [left, top, width, height] = kind.box, down = plan.x.down;
  const wires = walkNode(under, "g", { transform: `translate(0 ${bottom})` });
  const group = walkNode(over, "g", { transform: `translate(0 ${bottom})` });
  const line = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x} ${y}`).join("");
  const of = (name) => kind.wires.filter((wire) => wire.kind === name).map((wire) => line(wire.points)).join("");
  const tips = kind.wires.filter((wire) => wire.kind === "out").map((wire) => {
    const [x, y] = wire.points.at(-1);
    return `M${x - 5} ${y - 3}L${x - 1} ${y}L${x - 5} ${y + 3}`;
  });
  walkNode(wires, "path", { class: "nv-walk-aside", d: of("aside") });
  walkNode(wires, "path", { class: "nv-walk-out", d: of("out") + tips.join("") });
  const back = walkNode(wires, "path", { class: "nv-walk-back", d: of("back") });
  const taken = kind.nodes.filter((node) => node.at === "box" && node.words).map(({ y }) => (
    `M${down} ${y}H${left + width + 1}m4 -3l-4 3l4 3`));
  walkNode(wires, "path", { class: "nv-walk-taken", d: taken.join("") });
  const box = walkNode(group, "rect", { class: "nv-walk-box", x: left, y: top, width, height, rx: 5 });
  walkNode(group, "path", { class: "nv-walk-halves", d: `M${left} ${-kind.height / 2}h${width}` });
  const texts = [];
  for (const node of kind.nodes) buildPart(group, node, texts, kind.height / 2);
  return { back, box, texts, group };
}

function buildPart(group, node, texts, high) {
  const { x, y } = node, r = Math.min(4.6, 0.175 * high);
  if (node.kind === "attention" || node.kind === "ffn") {
    texts.push(walkNode(group, "text", { class: "nv-walk-name", x, y: y + 3.6 }, node.words));
  } else if (node.kind === "norm" && node.at !== "stream") {
    const tall = Math.min(node.at === "box" ? 9 : 12, 0.55 * high);
    walkNode(group, "rect", { class: `nv-walk-norm nv-walk-in-${node.at}`, x: x - 2.2, y: y - tall / 2, width: 4.4, height: tall, rx: 1.5 });
  } else if (node.kind === "plus" || node.kind === "mix") {
    walkNode(group, "circle", { class: "nv-walk-sum", cx: x, cy: y, r });
    walkNode(group, "path", { class: "nv-walk-sign", d: `M${x - r * 0.55} ${y}h${r * 1.1}M${x} ${y - r * 0.55}v${r * 1.1}` });
  } else if (node.kind === "gain") {
    const small = r * 0.85, arm = small * 0.48;
    walkNode(group, "circle", { class: "nv-walk-sum", cx: x, cy: y, r: small });
    walkNode(group, "path", { class: "nv-walk-sign", d: `M${x - arm} ${y - arm}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}` });
  }
}

function buildEnds(view, over) {
  const { plan } = view;
  for (const node of plan.nodes) {
    if (node.kind !== "embed" && node.kind !== "head") continue;
    const { x, y, width, height } = node;
    walkNode(over, "rect", { class: "nv-walk-end", x, y, width, height, rx: 6 });
    walkNode(over, "text", { class: "nv-walk-name", x: x + width / 2, y: y + height / 2 + 3.6 }, node.words);
  }
  walkNode(over, "text", { class: "nv-walk-title", x: plan.x.up, y: 12 }, `↑ ${plan.probes.stream_rms.label}`);
  walkNode(over, "text", { class: "nv-walk-title", x: plan.x.down, y: 12 }, `${plan.probes.grad_hidden.label} ↓`);
}

// One block larger, where the rows have no room for what is in them.
function buildExample(view, kind, y) {
  const { plan, svg } = view, bottom = y + kind.height + 16, { up, down } = plan.x;
  const name = kind.words === "every block" ? (plan.rows.group > 1 ? `Every row is ${plan.rows.group} such blocks` : "Every row is such a block") : `Rows of ${kind.words} are such blocks`;
  walkNode(svg, "text", { class: "nv-walk-title nv-walk-start", x: 2, y: y + 9 }, name);
  const [under, stubs, over] = [1, 2, 3].map(() => walkNode(svg, "g"));
  for (const [side, x] of [["up", up], ["down", down]]) {
    const stub = walkNode(stubs, "g", { class: `nv-walk-${side}` });
    const { copies } = plan.streams, own = 16 / copies, left = x - 8 - (copies - 1) * 1.25;
    const lines = Array.from({ length: copies }, (_, i) => `M${left + i * (own + 2.5)} ${bottom}h${own}v${-kind.height}h${-own}Z`);
    walkNode(stub, "path", { class: "nv-walk-flow", d: lines.join("") });
    const bars = kind.nodes.filter((node) => node.kind === "norm" && node.at === "stream");
    walkNode(stub, "path", { class: "nv-walk-bars", d: bars.map((node) => `M${x - 13} ${bottom + node.y}h26`).join("") });
  }
  buildInside(plan, kind, under, over, bottom).box.setAttribute("fill", "none");
  return bottom + 10;
}

function buildLegend(view, y) {
  const { plan, svg } = view, { probes } = plan, scales = {};
  const wedge = `M0 ${y + 25}L84 ${y + 19}v12Z`;
  const columns = [["stream_rms", 14, "up"], ["grad_block", 128, ""], ["grad_hidden", 242, "down"]];
  for (const [probe, x, side] of columns) {
    const group = walkNode(svg, "g", { transform: `translate(${x} 0)`, class: side && `nv-walk-${side}` });
    const title = `${probe === "stream_rms" ? "Stream" : probe === "grad_block" ? "Parameters" : "Gradient"}, ${probes[probe].unit}`;
    walkNode(group, "text", { class: "nv-walk-title", x: 42, y: y + 11 }, title);
    if (side) walkNode(group, "path", { class: "nv-walk-flow", d: wedge });
    else plan.ramp.forEach((fill, i) => walkNode(group, "rect", { fill, x: (i * 84) / plan.ramp.length, y: y + 19, width: 84 / plan.ramp.length + 0.5, height: 12 }));
    scales[probe] = ["nv-walk-start", "nv-walk-finish"].map((place, i) => (
      walkNode(group, "text", { class: `nv-walk-number ${place}`, x: 84 * i, y: y + 43 })));
  }
  const key = walkNode(svg, "g", { transform: `translate(0 ${y + 62})` });
  walkNode(key, "rect", { class: "nv-walk-norm", x: 14, y: -8, width: 4.4, height: 12, rx: 1.5 });
  walkNode(key, "text", { class: "nv-walk-number nv-walk-start", x: 24, y: 2 }, plan.norm);
  walkNode(key, "path", { class: "nv-walk-lost", d: "M128 -2h22" });
  walkNode(key, "text", { class: "nv-walk-number nv-walk-start", x: 156, y: 2 }, "below the scale");
  walkNode(key, "path", { class: "nv-walk-bad", d: "M242 -2h22" });
  walkNode(key, "text", { class: "nv-walk-number nv-walk-start", x: 270, y: 2 }, "not finite");
  return scales;
}

