// A chart as a file: drawn once more at one width, whatever the screen, and dark on white, whatever the page.

import { fitted } from "./chart.js";

const PICTURE = { width: 720, background: "#ffffff", scale: { png: 2, svg: 1 } };
const LETTERS = { head: 84, line: 115 };  // in a line of that width, at the sizes of `captioned`

// The spec with lines above it: which duel it is of, with which settings, and where it can be opened.
export function captioned(spec, [first, ...rest]) {
  if (!first) return spec;
  const head = wrapped(first, LETTERS.head), lines = rest.flatMap((line) => wrapped(line, LETTERS.line));
  const color = spec.config?.axis?.labelColor ?? "#5b606b";
  const own = { text: head, color, subtitleColor: color, fontSize: 15, subtitleFontSize: 11, offset: 12, anchor: "start" };
  if (!spec.title) return { ...spec, title: { ...own, subtitle: lines } };
  const { subtitle = [], ...title } = spec.title;
  return { ...spec, title: { ...title, subtitle: [subtitle, wrapped(first, LETTERS.line), lines].flat() } };
}

// A line in lines of at most so many letters; a longer word has one of its own.
function wrapped(text, letters) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + 1 + word.length > letters) lines.push("");
    lines[lines.length - 1] += (lines.at(-1) && " ") + word;
  }
  return lines;
}

// `sets` are all rows of the chart; `kind` is png or svg.
export function savePicture(spec, sets, kind, name) {
  return offScreen(spec, sets, async (view) => {
    const href = await view.toImageURL(kind, PICTURE.scale[kind]);
    Object.assign(document.createElement("a"), { href, download: name }).click();
  });
}

// The browser's print dialog with the chart on a page of its size, which it also saves as a PDF.
export function printPicture(spec, sets, name) {
  return offScreen(spec, sets, async (view) => {
    const svg = await view.toSVG(), [, width, height] = /width="([\d.]+)" height="([\d.]+)"/.exec(svg);
    const frame = document.createElement("iframe"), page = `size: ${width}px ${height}px; margin: 0`;
    frame.setAttribute("sandbox", "allow-same-origin allow-modals");  // no script
    frame.setAttribute("style", "position: fixed; width: 0; height: 0; border: 0");
    frame.srcdoc = `<title>${name}</title><style>@page { ${page} } body { margin: 0 } svg { display: block }</style>${svg}`;
    frame.onload = () => {
      frame.contentWindow.onafterprint = () => frame.remove();
      frame.contentWindow.print();
    };
    document.body.append(frame);
  });
}

// The chart as a PNG in the clipboard. The browser is given a promise: it asks for one in the click itself.
export async function copyPicture(spec, sets) {
  const picture = offScreen(spec, sets, async (view) => {
    const canvas = await view.toCanvas(PICTURE.scale.png);
    return new Promise((done) => { canvas.toBlob(done, "image/png"); });
  });
  await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
}

async function offScreen(spec, sets, use) {
  const embedded = await globalThis.normvizVega.vegaEmbed(
    document.createElement("div"),
    { ...fitted(spec, PICTURE.width), background: PICTURE.background, datasets: structuredClone(sets) },
    { mode: "vega-lite", renderer: "none", actions: false, defaultStyle: false },
  );
  try {
    return await use(embedded.view);
  } finally {
    embedded.finalize();
  }
}
