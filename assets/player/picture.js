// A chart as a file: drawn once more at one width, whatever the screen, on the page's background.

import { fitted } from "./chart.js";

const PICTURE = { width: 720, scale: { png: 2, svg: 1 } };

// The spec with lines above it: which duel it is of, with which settings, and where it can be opened.
export function captioned(spec, [head, ...lines]) {
  if (!head) return spec;
  const color = spec.config?.axis?.labelColor ?? "#5b606b";
  const own = { text: head, color, subtitleColor: color, fontSize: 15, subtitleFontSize: 11, offset: 12, anchor: "start" };
  if (!spec.title) return { ...spec, title: { ...own, subtitle: lines } };
  const { subtitle = [], ...title } = spec.title;
  return { ...spec, title: { ...title, subtitle: [subtitle, head, ...lines].flat() } };
}

// `sets` are all rows of the chart; `kind` is png or svg.
export function savePicture(spec, sets, kind, background, name) {
  return offScreen(spec, sets, background, async (view) => {
    const href = await view.toImageURL(kind, PICTURE.scale[kind]);
    Object.assign(document.createElement("a"), { href, download: name }).click();
  });
}

// The chart as a PNG in the clipboard. The browser is given a promise: it asks for one in the click itself.
export async function copyPicture(spec, sets, background) {
  const picture = offScreen(spec, sets, background, async (view) => {
    const canvas = await view.toCanvas(PICTURE.scale.png);
    return new Promise((done) => { canvas.toBlob(done, "image/png"); });
  });
  await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
}

async function offScreen(spec, sets, background, use) {
  const embedded = await globalThis.normvizVega.vegaEmbed(
    document.createElement("div"),
    { ...fitted(spec, PICTURE.width), background, datasets: structuredClone(sets) },
    { mode: "vega-lite", renderer: "none", actions: false, defaultStyle: false },
  );
  try {
    return await use(embedded.view);
  } finally {
    embedded.finalize();
  }
}
