// The signal walk: a lane's whole stack. Up the left goes the stream, as wide as its RMS; down the
// right its gradient, as wide as its norm; between them every block, coloured by what its parameters
// get of it. Built once for a plan (normviz/player/walk.py); after that only attributes change.

import { WALK_WIDE, buildWalk } from "./walk_build.js";

const WALK_THIN = 1.4, WALK_GAP = 2.5;

// values: of each probe one number a layer from its first on, or null. options: { domains, layer,
// color, dark, pick(layer) }.
export function drawWalk(host, plan, values, options) {
  let view = host.nvWalk;
  if (view?.plan !== plan) {
    view = host.nvWalk = buildWalk(host, plan);
    listenWalk(view);
  }
  const before = view.options;
  const known = before && Object.keys(plan.probes).every((key) => (
    view.values[key] === values[key]
    && before.domains?.[key]?.lo === options.domains?.[key]?.lo
    && before.domains?.[key]?.hi === options.domains?.[key]?.hi));
  view.values = values;
  view.options = options;
  if (known && ["layer", "color", "dark"].every((name) => before[name] === options[name])) return;
  updateWalk(view);
}

// "Activation RMS 1.2 at the embedding, 10.9 after block 12; gradient 0.003 after block 12, 4e-7 at
// the embedding: 7500 times less."
export function walkFinding(values) {
  const { stream_rms: up, grad_hidden: down } = values;
  const words = [];
  if (up?.length) words.push(walkEnds("activation RMS", up, 0, up.length - 1));
  if (down?.length) {
    const share = down[down.length - 1] / down[0];
    const change = !(share > 0) || !Number.isFinite(share) || Math.max(share, 1 / share) < 1.5 ? ""
      : share > 1 ? `: ${walkTimes(share)} times less` : `: ${walkTimes(1 / share)} times more`;
    words.push(walkEnds("gradient", down, down.length - 1, 0) + change);
  }
  const all = words.join("; ");
  return all ? `${all[0].toUpperCase()}${all.slice(1)}.` : "No numbers at this step yet.";
}

function walkEnds(what, list, from, to) {
  const place = (layer) => (layer ? `after block ${layer}` : "at the embedding");
  const way = from <= to ? 1 : -1;
  let bad = from;
  while (Number.isFinite(list[bad]) && bad !== to + way) bad += way;
  const start = `${what} ${walkNumber(list[from])} ${place(from)}`;
  if (bad === to + way) return from === to ? start : `${start}, ${walkNumber(list[to])} ${place(to)}`;
  return bad === from ? `${what} not finite ${place(from)}` : `${start}, not finite ${place(bad)}`;
}

const walkNumber = (value) => {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-3 && size < 1e4)) return String(Number(value.toPrecision(size < 1 ? 2 : 3)));
  return value.toExponential(1).replace("+", "").replace(".0e", "e");
};
const walkTimes = (times) => (times < 10 ? times.toPrecision(2) : times < 1e6
  ? String(Math.round(Number(times.toPrecision(2)))) : walkNumber(times));

// Sets an attribute (or, as "text", the words) where it is another one than before.
function walkSet(node, name, value) {
  const last = (node.nvKept ??= {});
  if (last[name] === value) return;
  last[name] = value;
  if (name === "text") node.textContent = value; else node.setAttribute(name, value);
}

// Drawing

function updateWalk(view) {
  const { plan, options, values, svg } = view;
  svg.style.setProperty("--walk-lane", options.color);
  svg.style.setProperty("--walk-red", plan.red);
  svg.classList.toggle("nv-walk-dark", Boolean(options.dark));
  for (const arrow of view.arrows) updateArrow(view, arrow);
  updateBlocks(view);
  updateMark(view);
  view.arrows.forEach((arrow, i) => updateLabels(view, arrow, view.labels[i]));
  updateScales(view);
  const finding = walkFinding(values), at = view.hover ?? options.layer ?? null;
  walkSet(svg, "aria-label", finding);
  walkSet(view.words, "text", at === null ? finding : walkReadout(view, at));
}

// What a layer (or the last of a row's layers) has of a probe; undefined where there is none.
const walkValue = (view, probe, layer) => view.values[probe]?.[layer - view.plan.probes[probe].first];

function walkDomain(view, probe) {
  const given = view.options.domains?.[probe], [lo, hi] = view.plan.probes[probe].domain;
  return given ?? { lo, hi };
}

// 0 at the domain's lower end to 1 at its upper, on a log scale, clamped; NaN where not finite.
function walkShare(value, { lo, hi }) {
  if (!Number.isFinite(value)) return NaN;
  if (value <= lo || hi <= lo) return 0;
  return Math.min(1, Math.log(value / lo) / Math.log(hi / lo));
}

const walkThick = (share, most) => WALK_THIN + share * (most - WALK_THIN);

// A row of several layers counts as broken where one of them is.
function walkWorst(view, edge, probe) {
  for (let layer = edge.first; layer < edge.layer; layer++) {
    const value = walkValue(view, probe, layer);
    if (value !== undefined && !Number.isFinite(value)) return value;
  }
  return walkValue(view, probe, edge.layer);
}

function updateArrow(view, arrow) {
  const domain = walkDomain(view, arrow.probe), x = arrow.x;
  let points = arrow.edges.map((edge) => {
    const value = walkWorst(view, edge, arrow.probe), share = value === undefined ? undefined : walkShare(value, domain);
    return { y: edge.y, share, wide: share > 0 ? walkThick(share, WALK_WIDE) : WALK_THIN };
  });
  arrow.points = points = [
    { ...points[0], y: arrow.low }, ...points, { ...points[points.length - 1], y: arrow.high }];
  const flow = [], lost = [], bad = [], tips = [], cuts = [];
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    if (a.share === undefined || b.share === undefined) continue;
    if (Number.isNaN(a.share) || Number.isNaN(b.share)) bad.push(`M${x} ${a.y}V${b.y}`);
    else if (!a.share && !b.share) lost.push(`M${x} ${a.y}V${b.y}`);
    else flow.push(...walkRibbons(x, a, b, arrow.copies));
  }
  const step = Math.max(1, Math.round(24 / view.plan.rows.height));
  for (let i = 1; i + 1 < points.length; i += step) {
    const a = points[i], b = points[Math.min(i + 1, points.length - 1)];
    if (!(a.share >= 0 && b.share >= 0) || (view.plan.detailed && i === points.length - 2)) continue;
    const y = view.plan.detailed ? a.y - (arrow.up ? 0.08 : 0.27) * view.plan.rows.height : a.y, wide = a.wide;
    const inside = wide > 13, arm = inside ? Math.min(5, wide * 0.22) : 4.2, way = arrow.up ? 1 : -1;
    (inside ? cuts : tips).push(`M${x - arm} ${y + way * arm * 0.6}L${x} ${y - way * arm * 0.4}L${x + arm} ${y + way * arm * 0.6}`);
  }
  const known = points.some(({ share }) => share !== undefined);
  const bars = (known ? arrow.norms : []).map((y) => {
    const half = arrowWidth(arrow, y) / 2 + 5;
    return `M${(x - half).toFixed(1)} ${y}h${(2 * half).toFixed(1)}`;
  });
  for (const [part, paths] of Object.entries({ flow, lost, bad, tips, cuts, bars })) walkSet(arrow[part], "d", paths.join(""));
}

// The stretch between two points as one ribbon, or as several side by side.
function walkRibbons(x, a, b, copies) {
  const gaps = (copies - 1) * WALK_GAP, middle = ((a.y + b.y) / 2).toFixed(1);
  return Array.from({ length: copies }, (_, i) => {
    const [from, to] = [a, b].map(({ wide }) => {
      const own = wide / copies, left = x - (wide + gaps) / 2 + i * (own + WALK_GAP);
      return [left.toFixed(2), (left + own).toFixed(2)];
    });
    return `M${from[0]} ${a.y}C${from[0]} ${middle} ${to[0]} ${middle} ${to[0]} ${b.y}`
      + `H${to[1]}C${to[1]} ${middle} ${from[1]} ${middle} ${from[1]} ${a.y}Z`;
  });
}

function arrowWidth(arrow, y) {
  const i = Math.max(1, arrow.points.findIndex((point) => point.y <= y));
  return Math.max(arrow.points[i - 1].wide, arrow.points[i].wide) + (arrow.copies - 1) * WALK_GAP;
}

function updateBlocks(view) {
  const { plan } = view, high = plan.rows.height;
  const fill = walkDomain(view, "grad_block"), wide = walkDomain(view, "stream_rms");
  const most = plan.detailed ? Math.min(8, 0.17 * high) : 0.6 * high;
  const branches = (view.branches ??= plan.edges.filter((edge) => edge.kind === "branch"));
  view.blocks.forEach((block, i) => {
    const value = walkWorst(view, block, "grad_block"), share = walkShare(value, fill), { box, texts, group } = view.boxes[i];
    const broken = value !== undefined && Number.isNaN(share);
    const color = value === undefined ? "none" : broken ? plan.red : plan.ramp[Math.round(share * (plan.ramp.length - 1))];
    walkSet(box, "fill", color);
    if (group) walkSet(group, "class", value === undefined ? "" : !broken && share > 0.6 ? "nv-walk-light" : "nv-walk-deep");
    texts?.forEach((text) => { text.nvName ??= text.textContent; walkSet(text, "text", broken ? `${text.nvName}: ${walkNumber(value)}` : text.nvName); });
    const size = branchSize(view, branches[i]);
    const thick = size === undefined ? 0 : walkShare(size, wide);
    walkSet(view.backs[i], "stroke-width", (Number.isNaN(thick) ? most : Math.min(most, 1) + thick * Math.max(0, most - 1)).toFixed(2));
    walkSet(view.backs[i], "class", Number.isNaN(thick) ? "nv-walk-back nv-walk-broken" : "nv-walk-back");
  });
}

// RMS of what a block's branches add, from their ratio to the stream they are added to.
function branchSize(view, edge) {
  const ratio = walkWorst(view, edge, "branch_ratio");
  const skip = edge.below === null ? 1 : walkValue(view, "stream_rms", edge.below);
  return ratio === undefined || skip === undefined ? undefined : ratio * skip * edge.factor;
}

const walkRow = (view, layer) => Math.ceil(layer / view.plan.rows.group) - 1;

function updateMark(view) {
  const layer = view.hover ?? view.options.layer ?? null, { plan, mark } = view;
  const there = layer !== null && layer <= plan.depth;
  walkSet(mark, "visibility", there ? "visible" : "hidden");
  if (!there) return;
  const row = walkRow(view, layer), high = plan.rows.height, bottom = view.blocks[0].y;
  const foot = view.plan.nodes.find((node) => node.kind === "embed");
  const [y, height] = row < 0 ? [bottom, foot.y + foot.height - bottom + 2] : [view.blocks[row].y - high, high];
  walkSet(mark, "y", Math.min(y, y + height / 2 - 2));
  walkSet(mark, "height", Math.max(4, height));
}

// Values beside an arrow: pointed at, picked, the first that is broken, both ends, the middle.
function updateLabels(view, arrow, texts) {
  const { plan, options } = view, { edges } = arrow;
  const row = (layer) => (layer === null || layer === undefined || layer > plan.depth ? -1 : walkRow(view, layer) + 1);
  const broken = edges.map((edge) => walkWorst(view, edge, arrow.probe)).map((v) => v !== undefined && !Number.isFinite(v));
  const wanted = [row(view.hover), row(options.layer), arrow.up ? broken.indexOf(true) : broken.lastIndexOf(true),
    0, edges.length - 1, edges.length >> 1];
  const taken = [];
  wanted.forEach((at, i) => {
    const edge = edges[at], value = edge && walkWorst(view, edge, arrow.probe);
    const shown = value !== undefined && taken.every((y) => Math.abs(y - edge.y) > 12);
    walkSet(texts[i], "visibility", shown ? "visible" : "hidden");
    if (!shown) return;
    taken.push(edge.y);
    walkSet(texts[i], "text", walkNumber(value));
    walkSet(texts[i], "x", arrow.up ? arrow.x - WALK_WIDE / 2 - 9 : arrow.x + WALK_WIDE / 2 + 9);
    walkSet(texts[i], "y", edge.y + 3.6);
    walkSet(texts[i], "class", `nv-walk-value ${arrow.up ? "nv-walk-finish" : "nv-walk-start"}${broken[at] ? " nv-walk-word" : ""}`);
  });
}

function updateScales(view) {
  for (const [probe, texts] of Object.entries(view.legend)) {
    const { lo, hi } = walkDomain(view, probe);
    walkSet(texts[0], "text", walkNumber(lo));
    walkSet(texts[1], "text", walkNumber(hi));
  }
}

// "Block 5: stream RMS 3.1, its branches 0.2 of the stream; gradient 0.02, of its parameters 0.4."
function walkReadout(view, layer) {
  const part = (probe, words) => {
    const value = walkValue(view, probe, layer);
    return value === undefined ? [] : [`${words} ${walkNumber(value)}`];
  };
  const gains = view.blocks[walkRow(view, layer)]?.layer === layer ? view.blocks[walkRow(view, layer)].gains ?? {} : {};
  const parts = [
    ...part("stream_rms", "stream RMS"), ...part("branch_ratio", "branch over stream"),
    ...part("grad_hidden", "gradient"), ...part("grad_block", "parameter gradient"),
    ...Object.entries(gains).map(([slot, [a, b]]) => `${slot.replace("_", " ")} ${a === b ? a : `${a ?? "none"} and ${b ?? "none"}`}`)];
  return `${layer === 0 ? "Embedding" : `Block ${layer}`}: ${parts.join(", ") || "no numbers at this step"}.`;
}

// Pointer and keys

function listenWalk(view) {
  const { svg, plan } = view, rows = plan.rows;
  const layerAt = (event) => {
    const box = svg.getBoundingClientRect(), scale = plan.width / box.width;
    const y = (event.clientY - box.top) * scale, row = Math.floor((view.blocks[0].y - y) / rows.height);
    if (y > plan.height || row >= rows.count) return null;
    return row < 0 ? 0 : view.blocks[row].layer;
  };
  const hover = (layer) => {
    if (layer === view.hover) return;
    view.hover = layer;
    if (view.options) updateWalk(view);
  };
  svg.addEventListener("pointermove", (event) => hover(layerAt(event)));
  svg.addEventListener("pointerleave", () => hover(null));
  svg.addEventListener("click", (event) => {
    const layer = layerAt(event);
    if (layer !== null) view.options?.pick?.(layer);
  });
  svg.addEventListener("keydown", (event) => {
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key], at = view.options?.layer;
    if (!way || !view.options) return;
    event.preventDefault();
    const row = at === null || at === undefined ? (way > 0 ? -1 : rows.count) : Math.ceil(at / rows.group) - 1;
    const next = Math.min(rows.count - 1, Math.max(-1, row + way));
    const layer = next < 0 ? 0 : view.blocks[next].layer;
    if (layer !== at) view.options.pick?.(layer);
  });
}
