// The batch of each step, as normviz/model/data.py makes it, from the generator that `Tape` has.

const IGNORED = -100;

// A batch: { inputs, targets } of B rows of T. `tape` has the sizes and the numbers, `task` is of
// normviz/browser/task.py.
export function batchOf(tape, task, seed, step) {
  return MAKERS[task.key](tape, task, "batch", seed, step);
}

// Null where training reads everything.
export function heldOutBatch(tape, task) {
  return task.key === "prose" ? null : MAKERS[task.key](tape, task, "held out", 0, 0);
}

// Index of the first bound above x, as searchsorted of NumPy with side="right".
export function pick(bounds, x) {
  let low = 0, high = bounds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bounds[middle] <= x) low = middle + 1; else high = middle;
  }
  return low;
}

const MAKERS = {
  markov(tape, { first, next, successors }, name, seed, step) {
    const { batch, seq_len: length } = tape.model, found = rows(batch, length);
    const numbers = tape.uniform(name, seed, step, batch * (length + 1));
    for (let row = 0; row < batch; row++) {
      let state = pick(first, numbers[row]);
      for (let t = 0; t < length; t++) {
        found.inputs[row * length + t] = state;
        state = successors[state][pick(next, numbers[batch * (t + 1) + row])];
        found.targets[row * length + t] = state;
      }
    }
    return found;
  },

  copy(tape, { vocabulary }, name, seed, step) {
    const { batch, seq_len: length } = tape.model, half = Math.floor(length / 2), found = rows(batch, length);
    const numbers = tape.uniform(name, seed, step, batch * half);
    for (let row = 0; row < batch; row++) {
      for (let t = 0; t < length; t++) {
        const token = (k) => Math.floor(numbers[row * half + k % half] * vocabulary), at = row * length + t;
        found.inputs[at] = token(t);
        found.targets[at] = t < half - 1 || t === length - 1 ? IGNORED : token(t + 1);
      }
    }
    return found;
  },

  prose(tape, { codes }, name, seed, step) {
    const { batch, seq_len: length } = tape.model, found = rows(batch, length);
    const numbers = tape.uniform(name, seed, step, batch);
    for (let row = 0; row < batch; row++) {
      const start = Math.floor(numbers[row] * (codes.length - length));
      found.inputs.set(codes.slice(start, start + length), row * length);
      found.targets.set(codes.slice(start + 1, start + length + 1), row * length);
    }
    return found;
  },
};

function rows(batch, length) {
  return { inputs: new Int32Array(batch * length), targets: new Int32Array(batch * length) };
}
