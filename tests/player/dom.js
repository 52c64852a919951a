// As much of a page as the player's modules need in a test.

export function element(tag = "div") {
  const names = new Set();
  return {
    tag, style: { setProperty() {} }, dataset: {}, attributes: {}, children: [], listeners: {}, hidden: false, clientWidth: 500,
    classList: {
      add: (...some) => some.forEach((name) => names.add(name)),
      toggle: (name, on) => (on ? names.add(name) : names.delete(name)),
      contains: (name) => names.has(name),
    },
    appendChild(child) { this.append(child); return child; },
    append(...some) {
      for (const child of some) if (typeof child === "object") child.parent = this;
      this.children.push(...some);
    },
    after(child) { this.beside = child; },
    remove() {
      const { parent } = this;
      if (parent) parent.children = parent.children.filter((child) => child !== this);
    },
    replaceChildren(...some) { this.children = some; },
    createCaption() { return (this.caption = element("caption")); },
    createTHead() { return this; },
    createTBody() { return this; },
    insertRow() { return this.appendChild(element("tr")); },
    insertCell() { return this.appendChild(element("td")); },
    setAttribute(name, value) { this.attributes[name] = String(value); },
    addEventListener(name, act) { this.listeners[name] = act; },
    click() { globalThis.clicked.push(this); },
    // Every element inside, as deep as there are any.
    all() { return this.children.flatMap((child) => (child.all ? [child, ...child.all()] : [])); },
  };
}

globalThis.clicked = [];
globalThis.document = { createElement: element, createElementNS: (_, tag) => element(tag) };

// A lane with a value for each layer at each record.
export function lane(loss, records = [], values = [], about = {}) {
  return {
    loss, records, values, bad: null,
    about: { first: 1, row: "layer", unit: "nats per token", walks: true, depth: values[0]?.length ?? 2, steps: Math.max(loss.length, 1), span: about.steps ?? Math.max(loss.length, 1), name: "A Pre-LN", short: "A", ...about },
  };
}
