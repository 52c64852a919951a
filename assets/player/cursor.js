// Where all charts stand: a step that a visitor moves, that plays by itself, or that follows training.

const REPLAY_SECONDS = 8;

export class Cursor {
  constructor(changed) {
    this.changed = changed;
    this.step = 0;
    this.last = 0;
    this.layer = null;
    this.following = false;
    this.playing = null;
    this.speed = 1;
    this.hover = null;
  }

  // What the charts show: where the pointer is, while it points at a step.
  get at() {
    return Math.min(this.hover ?? this.step, this.last);
  }

  // What a link says of it: a step where it was left before the end, and the layer that was picked.
  get words() {
    const words = {};
    if (!this.playing && !this.following && this.step < this.last) words.at = this.step;
    if (this.layer !== null) words.layer = this.layer;
    return words;
  }

  pin(step) {
    this.playing = null;
    this.following = false;
    this.step = Math.max(0, Math.min(step, this.last));
    this.changed();
  }

  point(step) {
    const next = this.playing || this.following ? null : step;
    if (next === this.hover) return;
    this.hover = next;
    this.changed();
  }

  pick(layer) {
    this.layer = layer === this.layer ? null : layer;
    this.changed();
  }

  // The next layer up or down; at first the lowest or the highest.
  climb(by, [lowest, highest]) {
    const next = this.layer === null ? (by > 0 ? lowest : highest) : this.layer + by;
    if (next < lowest || next > highest) return;
    this.layer = next;
    this.changed();
  }

  // until: the step at which it stops; without one it plays to the last.
  play(until) {
    this.following = false;
    this.hover = null;
    const from = this.step >= this.last ? 0 : this.step;
    this.playing = { since: performance.now(), from: Math.sqrt(from / Math.max(1, this.last)), until };
    this.changed();
  }

  pause() {
    this.playing = null;
    this.changed();
  }

  rate(speed) {
    const going = this.playing;
    this.speed = speed;
    if (going) this.play(going.until);
  }

  // Slow first: the early steps decide. True while it moves.
  tick(now) {
    if (!this.playing) return false;
    const passed = ((now - this.playing.since) / 1000 / REPLAY_SECONDS) * this.speed;
    const share = Math.min(1, this.playing.from + Math.max(0, passed));
    const end = Math.min(this.playing.until ?? this.last, this.last);
    this.step = Math.min(end, Math.round(this.last * share * share));
    if (share >= 1 || this.step >= end) this.playing = null;
    return true;
  }
}
