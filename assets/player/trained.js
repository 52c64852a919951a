// Numbers that this browser makes itself, as a source of the player: the messages that a server would send.

import { filledChart, heatSets, lossDomain, lossSets, ratioDomain, spanOf, valueDomain } from "./axes.js";
import { lossWords, quotient } from "./numbers.js";

// duel: { lanes, templates, isLive, status, walk }. A lane: { name, short, scheme, depth, steps, chance,
// floor, edits, loss, heldOut: [[step, loss]], records: [{ step, layers }], bad }.
export function trained(duel) {
  let wanted = null, receive = null, known = null;
  const send = () => {
    if (!wanted) return;
    const request = wanted(), { message, key } = messageOf(duel, request, known);
    known = key;
    receive(message);
  };
  return {
    ask(request, receiver) {
      [wanted, receive, known] = [request, receiver, null];
      send();
    },
    changed: send,
    close() { wanted = null; },
  };
}

// One quantity of a lane as charts draw it: { steps, rows }.
export function shownValues(lane, probe, rounding) {
  const result = { steps: [], rows: [] };
  for (const { step, layers } of lane.records) {
    const values = layers[probe.key], larger = probe.rounds_with && layers[probe.rounds_with];
    if (!values) continue;  // nothing was updated
    const rounded = larger ? values.map((x, i) => (x < rounding * larger[i] ? 0 : x)) : values;
    result.steps.push(step);
    result.rows.push(probe.shown === "one_minus" ? rounded.map((x) => 1 - x) : rounded);
  }
  return result;
}

function messageOf(duel, request, known) {
  const { lanes, templates, isLive } = duel, probe = templates.probes.find(({ key }) => key === request.probe);
  const shown = lanes.map((lane) => shownValues(lane, probe, templates.rounding)), { view, linear } = request;
  const domain = valueDomain(probe, shown.flatMap(({ rows }) => rows), isLive, linear);
  const [bottom, top] = lossDomain(lanes), ends = [linear ? 0 : bottom, top];
  const between = view === "ratio" && lanes.length > 1 && lanes[0].depth === lanes[1].depth ? betweenOf(lanes, shown, probe) : null;
  const message = {
    live: isLive, view, probe: probe.key, status: duel.status,
    lanes: lanes.map((lane, i) => {
      const [losses, records] = request.have[i] ?? [0, 0], { steps, rows } = shown[i];
      return {
        from: [losses, records], loss: Float32Array.from(lane.loss.slice(losses)), records: steps.slice(records),
        values: Float32Array.from(rows.slice(records).flat()), bad: lane.bad && [lane.bad.step, lane.bad.layer],
      };
    }),
    sets: { loss: lossSets(lanes, ends), ...Object.fromEntries(lanes.map((lane, i) => [`heat${i}`, heatSets(lane)])) },
    ...(view === "walk" ? walkOf(duel) : {}),
  };
  if (!isLive) message.findings = findingsOf(lanes, probe);
  const span = spanOf(lanes), key = JSON.stringify([probe.key, domain, ends, span, between, view, linear, lanes.map(({ name, earlier }) => [name, earlier])]);
  if (key !== known) {
    Object.assign(message, {
      domain: { ...domain, loss: ends }, between, palette: templates.palette,
      comparing: templates.comparing, probes: templates.choices, lacking: "",
      about: lanes.map(({ name, short, depth, steps, scheme, earlier = false }, i) => ({
        name, short, depth, steps, span, scheme, color: stylesOf(duel)[i][0], earlier, first: probe.first, ...templates.about,
      })),
      charts: chartsOf(duel, probe, { domain, ends, span, between, view, linear }),
    });
  }
  return { message, key };
}

function stylesOf({ lanes, templates }) {
  return templates.styles[`${lanes[0].scheme} ${lanes[1].scheme}`];
}

// The axis of one lane's values divided by the other's.
function betweenOf(lanes, shown, probe) {
  const [over, under] = lanes.map((lane, i) => ({
    about: { first: probe.first, depth: lane.depth, steps: lane.steps }, loss: lane.loss, records: shown[i].steps, values: shown[i].rows,
  }));
  return ratioDomain(quotient(over, under).values);
}

function chartsOf(duel, probe, { domain, ends, span, between, view, linear }) {
  const { lanes, templates: { charts, marks } } = duel, styles = stylesOf(duel), labels = lanes.map(({ name }) => name);
  const steps = Math.max(...lanes.map((lane) => lane.steps)), depth = Math.max(...lanes.map((lane) => lane.depth));
  const fill = (name, of) => filledChart(charts[name], marks, { steps, labels, styles, ...of });
  const of = (at) => `${domain.scale} ${probe.first} ${at}`, title = probe.axis_label;
  const notes = (axis) => [axis.zeros && (probe.rounds_with ? "grey: 0, or lost in rounding" : "grey: 0"), axis.broken && "red: not finite"].filter(Boolean);
  const drawn = {
    loss: fill(`loss ${linear ? "linear" : "log"}`, { lossDomain: ends, steps: span }),
    bars: fill(`bars ${of(depth)}`, { domain, title }),
  };
  if (between) {
    drawn.ratio = fill(`ratio log ${probe.first} ${depth}`, { domain: between });
    const words = `${probe.title}, quotient: blue where the first is larger, orange the second`;
    Object.assign(drawn.ratio.title, { text: labels.join(" ÷ "), subtitle: [words, ...notes(between)].join(" · ") });
  } else if (view === "lines") {
    drawn.lines = fill(`lines ${domain.scale}`, { domain, title, steps: span });
  } else if (view !== "walk") {
    lanes.forEach((lane, i) => {
      const chart = fill(`heat ${of(lane.depth)}`, { domain, steps: lane.steps, labels: [labels[i]], styles: [styles[i]] });
      chart.title.subtitle = [title, ...notes(domain)].join(" · ");
      drawn[`heat${i}`] = chart;
    });
  }
  return drawn;
}

// The signal walk: each lane's plan, and the quantities that it carries.
function walkOf({ lanes, templates, walk, isLive }) {
  const carried = templates.carried.map((key) => templates.probes.find((probe) => probe.key === key)), domains = {};
  const values = lanes.map((lane) => carried.map((probe) => shownValues(lane, probe, templates.rounding)));
  carried.forEach((probe, k) => {
    const { lo, hi } = valueDomain(probe, values.flatMap((of) => of[k].rows), isLive, false);
    domains[probe.key] = { lo, hi };
  });
  return {
    walk: { plans: walk, domains },
    carried: values.map((of) => ({
      from: 0, records: of[0].steps,
      values: Object.fromEntries(carried.map((probe, k) => [probe.key, Float32Array.from(of[k].rows.flat())])),
    })),
  };
}

function findingsOf(lanes, probe) {
  const ends = lanes.map(({ name, loss, bad }) => (bad ? `${name} diverged at step ${bad.step}` : `${name} ${lossWords(loss.at(-1))} at step ${loss.length - 1}`));
  const words = `${probe.axis_label}: the numbers are in the table under the charts.`;
  return { loss: `Loss in nats per token: ${ends.join(", ")}.`, bars: words, lines: words, ratio: words, heat0: words, heat1: words };
}
