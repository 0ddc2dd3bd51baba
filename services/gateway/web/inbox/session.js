// SPDX-License-Identifier: Apache-2.0
// One inbox, for all elements of a page that show it: its token, calls, counts, and the news of it.

const POLL_MS = 30_000;     // where the API has no stream
const SILENCE_MS = 90_000;  // of a stream, after which it is opened again
const RETRY_MS = [1_000, 2_000, 5_000, 15_000, 60_000];

export class Failure extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? problem?.title ?? `HTTP ${status}`);
    this.status = status;
    this.type = problem?.type?.replace("urn:stentor:problem:", "");
  }
}

// Events: "counts" when they are newer, "change" when something may have changed that this page did not do.
class Session extends EventTarget {
  constructor(api, source) {
    super();
    this.api = `${api}/v1/inbox`;
    this.source = source; // async () => {token, expires_at}
    this.counts = { unseen: 0, unread: 0, total: 0, version: -1 };
    this.users = 0;
  }

  join() {
    if (this.users++ === 0) this.start();
  }

  leave() {
    if (--this.users === 0) {
      this.stopping.abort();
      this.wake?.();
      this.tabs?.close();
    }
  }

  start() {
    this.stopping = new AbortController();
    const { signal } = this.stopping;
    // Another tab of this origin has seen a newer version: its numbers may be of another user, so they are asked for.
    this.tabs = globalThis.BroadcastChannel ? new BroadcastChannel(`stentor ${this.api}`) : undefined;
    this.tabs?.addEventListener("message", ({ data }) => data > this.counts.version && !document.hidden && this.refresh().catch(() => {}));
    document.addEventListener("visibilitychange", () => document.hidden || this.wake?.(), { signal });
    this.run(signal);
  }

  // ---- the token ----

  async token() {
    if (this.held && Date.now() < this.held.until) return this.held.token;
    this.asking ??= this.ask().finally(() => { this.asking = undefined; });
    return this.asking;
  }

  async ask() {
    const { token, expires_at, server_time = Date.now() } = await this.source();
    if (typeof token !== "string" || token === "") throw new Failure(0, { detail: "the token URL gave no token" });
    const left = expires_at ? Date.parse(expires_at) - server_time : Infinity; // by the server's clock: the browser's may be wrong
    this.held = { token, until: Number.isFinite(left) ? Date.now() + Math.max(left - Math.min(60_000, left / 5), 1_000) : Infinity };
    return token;
  }

  drop(token) {
    if (this.held?.token === token) this.held = undefined;
  }

  // ---- calls ----

  async fetch(path, options, again = true) {
    const token = await this.token();
    const headers = { ...options.headers, Authorization: `Bearer ${token}` };
    const answer = await fetch(this.api + path, { cache: "no-store", credentials: "omit", ...options, headers });
    if (answer.status === 401 && again) {
      this.drop(token);
      return this.fetch(path, options, false);
    }
    return answer;
  }

  async call(method, path, body) {
    const sends = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    const answer = await this.fetch(path, { method, keepalive: method !== "GET", ...sends });
    if (!answer.ok) throw new Failure(answer.status, await answer.json().catch(() => undefined));
    return answer.json();
  }

  // A change of this page: what it answers are the counts behind it.
  async act(path, body) {
    this.take(await this.call("POST", path, body), true);
  }

  async refresh() {
    this.take(await this.call("GET", "/counts"));
  }

  take(counts, own = false) {
    const before = this.counts.version;
    if (!(counts.version >= before)) return;
    this.counts = { ...this.counts, ...counts };
    this.dispatchEvent(new Event("counts"));
    if (counts.version > before && before >= 0) {
      if (!own) this.dispatchEvent(new Event("change"));
      this.tabs?.postMessage(counts.version);
    }
  }

  // ---- news: a stream where the API has one, else the counts every half minute while the page is seen ----

  async run(signal) {
    let failures = 0;
    while (!signal.aborted) {
      let wait = POLL_MS;
      try {
        await this.refresh();
        if (!this.polls) {
          await this.listen(signal);
          wait = this.polls ? POLL_MS : 200;
        }
        failures = 0;
      } catch {
        if (signal.aborted) return;
        wait = RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)] * (0.75 + Math.random() / 2);
      }
      await this.pause(wait);
      if (document.hidden && this.polls && !signal.aborted) await this.pause();
    }
  }

  // Until then, or until the page is seen again, or it is over.
  pause(ms) {
    return new Promise((resolve) => {
      const timer = ms && setTimeout(resolve, ms);
      this.wake = () => { clearTimeout(timer); resolve(); };
    });
  }

  async listen(signal) {
    const ending = new AbortController();
    const end = () => ending.abort();
    let timer = setTimeout(end, SILENCE_MS);
    signal.addEventListener("abort", end, { once: true });
    try {
      const headers = { Accept: "text/event-stream", ...(this.lastId && { "Last-Event-ID": this.lastId }) };
      const answer = await this.fetch("/stream", { headers, signal: ending.signal });
      this.polls = [404, 405, 501].includes(answer.status);
      if (this.polls) return;
      if (!answer.ok) throw new Failure(answer.status);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(end, SILENCE_MS);
        const blocks = (rest + value).split(/\r?\n\r?\n/);
        rest = blocks.pop();
        for (const block of blocks) await this.hear(block);
      }
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      end();
    }
  }

  async hear(block) {
    const event = { event: "message", data: "" };
    for (const line of block.split(/\r?\n/)) {
      const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (name === "data") event.data += value;
      else if (name) event[name] = value;
    }
    if (event.id !== undefined) this.lastId = event.id;
    if (event.event === "reset") {
      this.lastId = undefined;
      await this.refresh();
    } else if (event.event === "end") {
      this.held = undefined; // a new token, and the stream again
      if (!event.data.includes("token-expired")) throw new Failure(403);
    } else if (event.data) {
      this.take(JSON.parse(event.data));
    }
  }
}

const sessions = new Map();

async function fromUrl(url) {
  const answer = await fetch(url, { credentials: "same-origin", cache: "no-store", headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Failure(answer.status);
  const date = Date.parse(answer.headers.get("Date"));
  return { ...(await answer.json()), ...(date && { server_time: date }) };
}

// Those that ask for tokens in the same way share one.
export function sessionOf(element) {
  const api = (element.getAttribute("api") ?? new URL(import.meta.url).origin).replace(/\/+$/, "");
  const url = element.getAttribute("token-url");
  const token = element.getAttribute("token");
  if (element.getToken) return new Session(api, element.getToken);
  if (!url && !token) return undefined;
  const key = JSON.stringify([api, url, token]);
  if (!sessions.has(key)) {
    sessions.set(key, new Session(api, url ? () => fromUrl(new URL(url, document.baseURI)) : async () => ({ token })));
  }
  return sessions.get(key);
}
