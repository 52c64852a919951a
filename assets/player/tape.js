// One model in one WebAssembly instance: normviz/native/tape.cpp, with the model that
// normviz/browser/model.py compiled beforehand.

const EPS = 1e-8;  // AdamW's, as in normviz/training/eager.py
const CONSTANT = 0, NORMAL = 2;

// A browser without SIMD refuses these 30 bytes: a function that adds nothing but one vector instruction.
const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
];

export function hasSimd() {
  return typeof WebAssembly === "object" && WebAssembly.validate(Uint8Array.from(SIMD));
}

// All rows of [head, middle, times, tail]; see `repeated` of browser.py.
function unrolled([head, middle, times, tail]) {
  return [...head, ...Array.from({ length: times }, () => middle).flat(), ...tail];
}

// The floats of base64 text.
export function decoded(text) {
  return new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}

export class Tape {
  // bytes: of tape.wasm. model: see that file. start: { init, initSeed, dropout }.
  static async open(bytes, model, start) {
    const module = await WebAssembly.compile(bytes), imports = {};
    // The C library names what it would print with; nothing here prints.
    for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = () => 0;
    const { exports } = await WebAssembly.instantiate(module, imports);
    exports._initialize?.();
    return new Tape(exports, model, start);
  }

  constructor(wasm, model, { init, initSeed, dropout }) {
    Object.assign(this, { wasm, model, initSeed, dropout });
    const [values, grads, parameters, scratch, sums] = model.sizes, { depth, batch, seq_len: length } = model;
    const count = model.constants[0].length, tokens = batch * length;
    const rooms = {
      operations: 192 * count, values: 4 * values, hidden: 4 * grads, parameters: 4 * parameters,
      grads: 4 * parameters, mean: 4 * parameters, square: 4 * parameters, scratch: 4 * scratch,
      sums: 8 * sums, seen: 24 * depth, sizes: 4 * tokens * model.width, tokens: 8 * tokens,
      targets: 8 * tokens, offsets: 8 * 3 * (2 * depth + 1), found: 8 * 5 * (2 * depth + 1), name: 256,
      numbers: 8 * 2 * (tokens + batch),
    };
    this.at = Object.fromEntries(Object.entries(rooms).map(([name, size]) => {
      const at = wasm.room(size);
      if (!at) throw new Error("the browser has no memory left for this model");
      return [name, at];
    }));
    this.memory = wasm.memory.buffer;  // nothing is allocated after this line
    this.fill();
    this.begin(init, initSeed);
    this.steps = 0;
    const { at } = this;
    wasm.set_model(at.operations, count, at.values, at.hidden, at.parameters, at.grads, batch, length, model.heads,
      at.seen, at.scratch, at.sums);
    this.scalesBefore = this.scales();
  }

  get bytes() {
    return this.memory.byteLength;
  }

  floats(at, count) { return new Float32Array(this.memory, at, count); }
  doubles(at, count) { return new Float64Array(this.memory, at, count); }
  longs(at, count) { return new BigInt64Array(this.memory, at, count); }

  // The operations as structs, and the fixed numbers that some of them save.
  fill() {
    const { operations, lag, constants: [c0, c1], tables } = this.model, count = c0.length;
    const whole = this.longs(this.at.operations, 24 * count), parts = this.doubles(this.at.operations, 24 * count);
    unrolled(operations).forEach((differences, i) => {
      differences.forEach((difference, field) => {
        whole[24 * i + field] = BigInt(difference) + (i < lag ? 0n : whole[24 * (i - lag) + field]);
      });
      parts[24 * i + 22] = c0[i];
      parts[24 * i + 23] = c1[i];
    });
    this.constants = parts;
    for (const [place, text] of tables) {
      const table = decoded(text);
      this.floats(this.at.values + 4 * place, table.length).set(table);
    }
  }

  named(name) {
    const bytes = new TextEncoder().encode(name);
    new Uint8Array(this.memory, this.at.name, 256).set(bytes);
    return bytes.length;
  }

  // Initial values: a number depends on the name of its parameter and the seed alone.
  begin(init, seed) {
    const { stretches, draws, inits } = this.model.parameters, all = this.floats(this.at.parameters, this.model.sizes[2]);
    let offset = 0;
    unrolled(stretches).forEach(([template, places, first, count, gain, ...of]) => {
      offset += places;
      const name = template.replace("#", Math.floor(offset / this.model.row));
      const [kind, size] = draws[of[inits.indexOf(init)]], at = this.at.parameters + 4 * offset;
      if (kind === CONSTANT) all.fill(Math.fround(Math.fround(size) * gain), offset, offset + count);
      else this.wasm.draw_values(this.at.name, this.named(name), seed, first, count, Number(kind === NORMAL), size, gain, at);
    });
  }

  // `count` uniform numbers in [0, 1) of a name, a seed and a step.
  uniform(name, seed, step, count) {
    this.wasm.draw_uniform(this.at.name, this.named(name), seed, step, 0, count, this.at.numbers);
    return this.doubles(this.at.numbers, count).slice();
  }

  put({ inputs, targets }) {
    const count = inputs.length, tokens = this.longs(this.at.tokens, count), wanted = this.longs(this.at.targets, count);
    for (let i = 0; i < count; i++) {
      tokens[i] = BigInt(inputs[i]);
      wanted[i] = BigInt(targets[i]);
    }
  }

  // Writes the masks of dropout: those of a step, or ones where a batch is held out.
  mask(step) {
    for (const [place, size, name] of this.model.masks) {
      const at = this.at.values + 4 * place;
      if (step === null) this.floats(at, size).fill(1);
      else this.wasm.draw_mask(this.at.name, this.named(name), this.initSeed, step, size, this.dropout, at);
    }
  }

  // Loss of the batch of step `at` in nats; the gradients are then in their buffer.
  step(batch, at, steps, watched) {
    const share = at / steps;
    for (const [i, name, most, ramp] of this.model.rising) {
      this.constants[24 * i + (name === "c0" ? 22 : 23)] = most * Math.min(1, share / ramp);
    }
    this.share = share;
    this.mask(at);
    const loss = this.forward(batch, watched);
    this.wasm.backward();
    return loss;
  }

  // Loss of a held-out batch.
  evaluate(batch) {
    this.mask(null);
    return this.forward(batch, false);
  }

  forward(batch, watched) {
    this.put(batch);
    return Math.fround(this.wasm.forward(this.at.tokens, this.at.targets, Number(watched)));
  }

  gradNorm() {
    return Math.fround(this.lengths(this.at.grads, [0], this.model.sizes[2])[0]);
  }

  lengths(base, offsets, size) {
    this.longs(this.at.offsets, offsets.length).set(offsets.map(BigInt));
    this.wasm.lengths(offsets.length, base, this.at.offsets, size, this.at.found);
    return [...this.doubles(this.at.found, offsets.length)];
  }

  // Five numbers of the stream after the embedding and each block; see `tape_stream`.
  stream() {
    const { stream, width } = this.model, n = stream.length;
    this.longs(this.at.offsets, n).set(stream.map(BigInt));
    this.wasm.stream(n, this.at.offsets, width, this.at.sizes, this.at.found);
    return columns(this.doubles(this.at.found, 5 * n));
  }

  // Five numbers of each sublayer; see `tape_branches`.
  branches() {
    const { reads, skip, branch, width } = this.model, n = reads.length, { offsets } = this.at;
    [reads, skip, branch].forEach((some, i) => this.longs(offsets + 8 * n * i, n).set(some.map(BigInt)));
    this.wasm.branches(n, offsets, offsets + 8 * n, offsets + 16 * n, width, this.at.found);
    return columns(this.doubles(this.at.found, 5 * n));
  }

  scales() {
    const all = this.floats(this.at.parameters, this.model.sizes[2]);
    return this.model.scales.map(([, first, count]) => all.slice(first, first + count));
  }

  factors(some) {
    const { rising } = this.model;
    return some.map((x) => (Array.isArray(x) ? rising[x[0]][2] * Math.min(1, this.share / rising[x[0]][3]) : x));
  }

  // All probes of the last watched step except the update ratio, each from its first layer up: the formulas
  // of `Tape.layers` in normviz/training/tape/engine.py.
  layers() {
    const { model, at } = this, { depth, width } = model, size = model.batch * model.seq_len * width, root = Math.sqrt(size);
    const rows = Array.from({ length: depth }, (_, i) => i * model.row), seen = this.doubles(at.seen, 3 * depth);
    const skipBy = this.factors(model.skip_factors), branchBy = this.factors(model.branch_factors);
    const [reads, skip, branch, cosine, product] = this.branches();
    const ofBlocks = (f) => rows.map((_, i) => (f(2 * i) + f(2 * i + 1)) / 2);
    const added = (i) => Math.sqrt(Math.max(0, (skipBy[i] * skip[i]) ** 2 + (branchBy[i] * branch[i]) ** 2
      + 2 * skipBy[i] * branchBy[i] * product[i]));
    const [lengths, cosines, largest, median, kurtosis] = this.stream();
    const start = (from) => rows.map((row) => row + from);
    return {
      grad_block: this.lengths(at.grads, rows, model.row),
      grad_w2: this.lengths(at.grads, start(model.w2), width * model.hidden),
      grad_qk: this.lengths(at.grads, start(model.qkv), 2 * width * width),
      grad_hidden: this.lengths(at.hidden, model.stream_grads, size),
      branch_ratio: ofBlocks((i) => Math.abs(branchBy[i] / skipBy[i]) * branch[i] / skip[i]),
      stream_rms: lengths.map((x) => x / root),
      token_cosine: cosines,
      attn_logit_max: rows.map((_, i) => seen[3 * i]),
      attn_entropy: rows.map((_, i) => seen[3 * i + 1]),
      stream_max: largest,
      stream_max_ratio: largest.map((x, i) => x / median[i]),
      stream_kurtosis: kurtosis,
      attn_sink: rows.map((_, i) => seen[3 * i + 2]),
      branch_cosine: ofBlocks((i) => Math.sign(branchBy[i] * skipBy[i]) * cosine[i]),
      branch_in_rms: ofBlocks((i) => reads[i]).map((x) => x / root),
      sum_rms: ofBlocks(added).map((x) => x / root),
      norm_drift: this.drift(),
    };
  }

  drift() {
    const squares = new Array(this.model.depth).fill(0), counts = new Array(this.model.depth).fill(0), now = this.scales();
    this.model.scales.forEach(([block, , count], i) => {
      counts[block] += count;
      now[i].forEach((value, k) => { squares[block] += (value - this.scalesBefore[i][k]) ** 2; });
    });
    return squares.map((sum, block) => Math.sqrt(sum / Math.max(1, counts[block])));
  }

  // Clip, and move the parameters. The update ratio of each block where `watched`.
  update({ lr, beta1, beta2, weightDecay, clip }, gradNorm, watched) {
    const { wasm, at, model } = this;
    if (clip !== null && gradNorm > clip) wasm.scale(model.sizes[2], at.grads, clip / gradNorm);
    this.steps += 1;
    wasm.adamw(model.sizes[2], model.depth, model.row, at.mean, at.square, lr, beta1, beta2, EPS, weightDecay,
      this.steps, watched ? at.found : 0);
    return watched ? [...this.doubles(at.found, model.depth)] : null;
  }

  // Of the gradients of each block the largest size, NaN or inf where one is not finite; and of all gradients.
  largestGradients() {
    const all = this.floats(this.at.grads, this.model.sizes[2]), { row, depth } = this.model;
    const largest = (part) => part.reduce((most, x) => (Number.isNaN(x) || Math.abs(x) > most ? Math.abs(x) : most), 0);
    return { blocks: Array.from({ length: depth }, (_, i) => largest(all.subarray(i * row, (i + 1) * row))), all: largest(all) };
  }
}

// Rows of five numbers as five columns.
function columns(rows) {
  return [0, 1, 2, 3, 4].map((k) => Array.from({ length: rows.length / 5 }, (_, i) => rows[5 * i + k]));
}
