import assert from "node:assert/strict";
import test from "node:test";
import { embedded, posted, socket } from "../../assets/player/source.js";

test("a closed socket is opened again, but not where the server does not know what was asked", (t) => {
  const lines = [];
  globalThis.WebSocket = class { constructor() { lines.push(this); } };
  t.mock.method(globalThis, "setTimeout", (again) => again());
  socket("here").ask(() => ({}), () => {});
  lines.at(-1).onclose({ code: 1006 });
  lines.at(-1).onclose({ code: 1008 });
  assert.equal(lines.length, 2);
});

test("a new connection asks for what is missing by then", (t) => {
  const lines = [];
  globalThis.WebSocket = class {
    static OPEN = 1;
    constructor() { lines.push(this); this.readyState = 1; this.sent = []; }
    send(text) { this.sent.push(text); }
    close() {}
  };
  t.mock.method(globalThis, "setTimeout", (again) => again());
  let have = 0;
  const source = socket("here");
  source.ask(() => ({ have }), () => {});
  lines[0].onopen();
  have = 7;
  lines[0].onclose({ code: 1006 });
  lines[1].onopen();
  source.close();
  lines[1].onclose({ code: 1006 });
  assert.deepEqual(lines.map(({ sent }) => sent), [['{"have":0}'], ['{"have":7}']]);
});

test("a browser without a network asks; where nobody answers for three seconds a new line opens with the network", (t) => {
  const lines = [], told = [], waits = [], events = {};
  globalThis.addEventListener = (kind, hear) => { events[kind] = hear; };
  globalThis.removeEventListener = (kind) => { delete events[kind]; };
  globalThis.WebSocket = class {
    static OPEN = 1;
    constructor() { lines.push(this); this.readyState = 1; this.sent = 0; }
    send() { this.sent += 1; }
    close() { this.onclose?.({ code: 1006 }); }
  };
  t.mock.method(globalThis, "setTimeout", (act, wait) => waits.push([act, wait]));
  const source = socket("here");
  source.ask(() => ({}), (message) => told.push(message));
  lines[0].onopen();
  events.online();
  events.offline();
  assert.deepEqual([lines[0].sent, waits[0][1]], [2, 3000]);
  lines[0].onmessage({ data: "1" });  // the server is on this machine
  waits[0][0]();
  assert.deepEqual([told, lines.length], [[1], 1]);
  events.offline();
  waits[1][0]();
  events.online();
  lines[1].onopen();
  assert.deepEqual([lines.length, lines[1].sent, told.length, waits.length], [2, 1, 1, 2]);
  source.close();
  assert.deepEqual(events, {});
});

test("a file gives the repeats and what was written with every probe, and the charts of the way it is looked at", () => {
  const looks = { "heat log": { view: "heat", charts: { loss: 0 } }, "walk linear": { view: "walk", charts: { loss: 1 } } };
  const probes = Object.fromEntries(["a", "b"].map((probe) => [probe, { numbers: { probe }, looks }]));
  const it = embedded({ probes, charts: ["first", "second"], repeats: ["curves"], writings: ["words"], walk: { plan: 1 } });
  const answers = [["a", "heat", false], ["b", "walk", true]].map(([probe, view, linear]) => {
    let answer;
    it.ask(() => ({ probe, view, linear }), (message) => { answer = message; });
    return answer;
  });
  assert.deepEqual(answers, [
    { probe: "a", repeats: ["curves"], writings: ["words"], view: "heat", charts: { loss: "first" } },
    { probe: "b", repeats: ["curves"], writings: ["words"], view: "walk", charts: { loss: "second" }, plan: 1 }]);
});

test("what another window posts is received for the quantity that is shown, also when that changes", () => {
  const heard = {}, told = [];
  globalThis.addEventListener = (kind, hear) => { heard[kind] = hear; };
  globalThis.removeEventListener = (kind) => { delete heard[kind]; };
  let probe = "a";
  const source = posted();
  source.ask(() => ({ probe }), (message) => told.push(message));
  heard.message({ data: "of somebody else" });
  const all = (a, b) => ({ data: { normviz: {
    shared: { palette: "p" }, charts: ["first", "second"],
    probes: { a: { at: a, charts: { loss: 0 } }, b: { at: b, charts: { loss: 0, bars: 1 } } } } } });
  heard.message(all(1, 2));
  probe = "b";
  source.ask(() => ({ probe }), (message) => told.push(message));
  heard.message(all(3, 4));
  source.close();
  const b = { loss: "first", bars: "second" };
  assert.deepEqual(told, [
    { palette: "p", at: 1, charts: { loss: "first" } }, { palette: "p", at: 2, charts: b },
    { palette: "p", at: 4, charts: b }]);
  assert.deepEqual(heard, {});
});
