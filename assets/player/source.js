// Where numbers come from: a socket of the server, the file that the script stands in, or another window.

// `file` holds the numbers of each probe once, those of repeats once, every chart once, and the ways to
// look at them.
export function embedded(file) {
  return {
    ask(request, receive) {
      const { probe, view, linear } = request(), { numbers, looks } = file.probes[probe];
      const look = looks[`${view} ${linear ? "linear" : "log"}`];
      const charts = Object.entries(look.charts).map(([name, place]) => [name, file.charts[place]]);
      const walk = view === "walk" ? file.walk : {};
      const { repeats, writings } = file;
      receive({ ...numbers, repeats, writings, ...look, ...walk, charts: Object.fromEntries(charts) });
    },
    close() {},
  };
}

// Numbers that another window posts as { normviz: { shared, charts, probes: { probe: message } } }, each time all
// of them: the frame of a notebook while a model trains. A message names its charts by their places in `charts`,
// and all of them have what is in `shared`. They are of the heatmap alone.
export function posted() {
  let latest = { probes: {} }, now = null, receive = null;
  const tell = () => {
    const shown = latest.probes[now];
    if (!shown) return;
    const charts = Object.entries(shown.charts).map(([name, place]) => [name, latest.charts[place]]);
    receive?.({ ...latest.shared, ...shown, charts: Object.fromEntries(charts) });
  };
  const heard = ({ data }) => {
    if (!data?.normviz) return;
    latest = data.normviz;
    tell();
  };
  addEventListener("message", heard);
  return {
    ask(request, receiver) {
      now = request().probe;
      receive = receiver;
      tell();
    },
    close() { removeEventListener("message", heard); },
  };
}

const SILENT = 3000;  // milliseconds without an answer, after the browser has lost its network

export function socket(address) {
  let line = null, wanted = null, receive = null, closed = false, wait = 250, heard = 0, lost = false;
  const open = () => {
    line = new WebSocket(address);
    line.onopen = send;
    line.onmessage = (event) => {
      wait = 250;
      heard += 1;
      lost = false;
      receive(JSON.parse(event.data));
    };
    line.onclose = ({ code }) => {
      if (closed || code === 1008) return;  // 1008: asked for what this server does not know
      setTimeout(open, wait);
      wait = Math.min(4000, 2 * wait);
    };
  };
  const send = () => {
    if (wanted && line?.readyState === WebSocket.OPEN) line.send(JSON.stringify(wanted()));
  };
  // A line does not close by itself when the network goes. The server is asked then: it may be on this machine.
  const offline = () => {
    const before = heard, asked = line;
    send();
    setTimeout(() => {
      if (closed || heard > before || line !== asked || line?.readyState !== WebSocket.OPEN) return;
      lost = true;
    }, SILENT);
  };
  const online = () => {
    if (!lost) return;
    Object.assign(line, { onmessage: null, onclose: null });
    line.close();
    lost = false;
    open();
  };
  globalThis.addEventListener?.("offline", offline);
  globalThis.addEventListener?.("online", online);
  return {
    // `request` is a function: after a broken line it is asked again, for what is missing by then.
    ask(request, receiver) {
      wanted = request;
      receive = receiver;
      if (line) send(); else open();
    },
    close() {
      closed = true;
      line?.close();
      globalThis.removeEventListener?.("offline", offline);
      globalThis.removeEventListener?.("online", online);
    },
  };
}
