// SPDX-License-Identifier: Apache-2.0
// Server-sent events by fetch(): an EventSource sends no Stentor-Tenant.

import { ask } from "./api.js";

const SILENCE_MS = 45_000; // three comments that did not come
const ENDED_MS = 10_000;   // a stream that lasted so long was ended by the server, which asks who is there now and then
const RETRY_MS = [1_000, 2_000, 5_000, 15_000];

// "id: 7\nevent: x\ndata: {}" to {id, event, data}.
export function readEvent(block) {
  const event = { event: "message", data: "" };
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name === "data") event.data += value;
    else if (name) event[name] = value;
  }
  return event;
}

async function listen(path, options, hear) {
  const silent = new AbortController();
  const end = () => silent.abort();
  let timer = setTimeout(end, SILENCE_MS);
  options.signal.addEventListener("abort", end, { once: true });
  try {
    const answer = await ask(path, { ...options, signal: silent.signal, headers: { Accept: "text/event-stream", ...options.headers } });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(end, SILENCE_MS);
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      blocks.map(readEvent).forEach(hear);
    }
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", end);
    end();
  }
}

// Until the function that it returns is called. `hear` gets {event, data, id}, with data parsed; `state` gets "open", "lost" or a problem that
// coming back does not mend.
export function follow(path, query, hear, state) {
  const stopping = new AbortController();
  const { signal } = stopping;
  let last;
  let failures = 0;
  const take = (event) => {
    last = event.id ?? last;
    failures = 0;
    state("open");
    if (event.event === "reset") last = undefined;
    if (event.data || event.event !== "message") hear({ ...event, data: event.data ? JSON.parse(event.data) : undefined });
  };
  (async () => {
    while (!signal.aborted) {
      const since = performance.now();
      let ended = true;
      try {
        await listen(path, { query, signal, headers: last && { "Last-Event-ID": last } }, take);
      } catch (error) {
        if (signal.aborted) return;
        if ([400, 401, 403, 404, 422].includes(error.status)) return state(error);
        ended = false;
      }
      if (signal.aborted) return;
      if (ended && performance.now() - since > ENDED_MS) continue;
      state("lost");
      const wait = RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)];
      await new Promise((resolve) => setTimeout(resolve, wait * (0.75 + Math.random() / 2)));
    }
  })();
  return () => stopping.abort();
}
