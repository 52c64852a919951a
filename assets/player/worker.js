// A lane's run in a worker of its own. It trains up to the step that the page allows, and sends what it made.

import { Tape } from "./tape.js";
import { Run } from "./training.js";

const SLICE_MS = 40;  // then it reads what the page sent

export class Lane {
  // send: gives the page an object. later: calls a function after the messages that wait.
  constructor(send, later) {
    Object.assign(this, { send, later, run: null, until: 0, goes: false });
  }

  // { open: { wasm, model, task, settings, start } }, { until: steps } or { edit: [step, lr] }.
  async receive({ open, until, edit }) {
    try {
      if (open) {
        const tape = await Tape.open(open.wasm, open.model, open.start);
        this.run = new Run(tape, open.task, open.settings);
        this.send({ ready: true, bytes: tape.bytes });
      }
      if (edit) this.run.settings.edits.push(edit);
      if (until !== undefined) this.until = until;
      if (this.run && !this.goes) this.slice();
    } catch (error) {
      this.send({ error: error?.message ?? String(error) });
    }
  }

  slice() {
    const { run } = this, rows = [], since = performance.now();
    try {
      while (!run.isOver && run.at < this.until && performance.now() - since < SLICE_MS) rows.push(run.next());
    } catch (error) {
      this.send({ error: error?.message ?? String(error) });
      return;
    }
    if (rows.length) this.send({ rows, at: run.at, isOver: run.isOver, ms: performance.now() - since });
    this.goes = !run.isOver && run.at < this.until;
    if (this.goes) this.later(() => this.slice());
  }
}

if (typeof WorkerGlobalScope !== "undefined") {
  const lane = new Lane((message) => postMessage(message), (call) => setTimeout(call));
  addEventListener("message", ({ data }) => lane.receive(data));
}
