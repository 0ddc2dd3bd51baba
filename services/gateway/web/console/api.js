// SPDX-License-Identifier: Apache-2.0
// Calls of the public API, by the session's cookie. Law: the console has no other source.

// An answer that is a problem document, or none at all (status 0).
export class Problem extends Error {
  constructor(status, document = {}) {
    super(document.detail ?? document.title ?? (status ? `The server answered ${status}.` : "The server does not answer."));
    this.status = status;
    this.slug = document.type?.replace("urn:stentor:problem:", "");
    this.title = document.title;
    this.fields = document.errors ?? (document.field ? [{ field: document.field, detail: document.detail }] : []);
    this.instance = document.instance; // urn:stentor:request:... or :fault:..., which the service's log has
  }
}

// "session": the session is over. "busy": a call began or ended.
export const events = new EventTarget();

const STORED = "stentor.tenant";
let tenant = "";

export const tenantNow = () => tenant;

export function chooseTenant(name) {
  tenant = name;
  sessionStorage.setItem(STORED, name);
}

export const tenantBefore = () => sessionStorage.getItem(STORED);

// For Idempotency-Key; crypto.randomUUID() is not there over plain HTTP.
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// "/v1/notifications" and {status: "failed", from: ""}: what is empty is left out.
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

// A path of names and ids: at`/v1/recipients/${id}`.
export const at = (parts, ...values) => String.raw({ raw: parts }, ...values.map((value) => encodeURIComponent(value)));

export async function ask(path, { method = "GET", query, body, headers, signal, key } = {}) {
  const sent = { ...headers, ...(tenant && { "Stentor-Tenant": tenant }), ...(key && { "Idempotency-Key": key }) };
  if (body !== undefined) sent["Content-Type"] ??= "application/json";
  let answer;
  try {
    answer = await fetch(address(path, query), {
      method, headers: sent, signal, cache: "no-store", credentials: "same-origin",
      body: body === undefined || typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body) });
  } catch (error) {
    throw signal?.aborted ? error : new Problem(0);
  }
  if (answer.status === 401) events.dispatchEvent(new Event("session"));
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => undefined));
  return answer;
}

const BUSY_MS = 2_000;
const BUSY_TRIES = 8;

// 503 `busy`, when as much of it as may be at once is under way: asked again in a moment, as the problem's page says.
export async function get(path, query, options) {
  for (let tries = 1; ; tries++) {
    try {
      return await ask(path, { query, ...options }).then((answer) => answer.json());
    } catch (problem) {
      if (problem.slug !== "busy" || tries === BUSY_TRIES) throw problem;
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    }
  }
}

// A write; its answer is JSON or, of 204, undefined. A key makes a POST safe to repeat.
export async function send(method, path, body, options = {}) {
  const answer = await ask(path, { method, body, ...(method === "POST" && { key: newKey() }), ...options });
  return answer.status === 204 ? undefined : answer.json().catch(() => undefined);
}
