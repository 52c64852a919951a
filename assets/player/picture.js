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
export async function savePicture(spec, sets, kind, background, name) {
  const embedded = await globalThis.normvizVega.vegaEmbed(
    document.createElement("div"),
    { ...fitted(spec, PICTURE.width), background, datasets: structuredClone(sets) },
    { mode: "vega-lite", renderer: "none", actions: false, defaultStyle: false },
  );
  try {
    const href = await embedded.view.toImageURL(kind, PICTURE.scale[kind]);
    Object.assign(document.createElement("a"), { href, download: name }).click();
  } finally {
    embedded.finalize();
  }
}
