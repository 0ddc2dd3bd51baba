// SPDX-License-Identifier: Apache-2.0
// How values are shown.

import { html } from "../html.js";
import { wordsOf } from "../words.js";

// Colour and sign by what a state means for the recipient; the word is always there.
const TONES = {
  good: ["sent", "delivered", "opened", "clicked", "read", "done", "ready", "active", "completed", "good", "same", "yes", "safe"],
  wait: ["accepted", "queued", "scheduled", "rendered", "deferred", "waiting", "rendering", "sending", "rejected_retryable", "running", "paused", "draft", "uploading", "few", "not-ready", "ready_to_start"],
  warn: ["suppressed", "unknown", "cancelled", "expired", "warn", "unsubscribed", "deprecated", "archived", "differs", "superseded", "timeout", "revoked", "may_double"],
  bad: ["failed", "bounced", "complained", "down", "over", "dead", "no", "error", "rejected_terminal", "bounce", "complaint", "refused", "rejected"],
};
const TONE = new Map(Object.entries(TONES).flatMap(([tone, names]) => names.map((name) => [name, tone])));
const SIGN = { good: "●", wait: "◐", warn: "▲", bad: "■" };

export const toneOf = (state) => TONE.get(state) ?? "none";

// `label`: another word for the state.
export function Pill({ state, label }) {
  const tone = toneOf(state);
  return html`<span class="pill ${tone}"><span aria-hidden="true">${SIGN[tone] ?? "○"}</span> ${label ?? state}</span>`;
}

// A code that says why, in plain words and as it is.
export function Reason({ of }) {
  const words = of && wordsOf(of);
  return of ? html`${words && `${words} `}<code class=${words ? "quiet" : ""}>${of}</code>` : null;
}

const SECOND = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" };
const SHORT = { hour: "2-digit", minute: "2-digit", second: "2-digit" };

// In the browser's zone; the title has it in UTC.
export function When({ at, short }) {
  const time = at ? new Date(at) : undefined;
  if (!time || Number.isNaN(time.getTime())) return html`<span>–</span>`;
  const today = short && time.toDateString() === new Date().toDateString();
  return html`<time datetime=${at} title=${time.toISOString()}>${new Intl.DateTimeFormat(undefined, today ? SHORT : SECOND).format(time)}</time>`;
}

const NUMBER = new Intl.NumberFormat();
const RATE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const PERCENT = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 2 });
export const number = (value) => (value === undefined || value === null ? "–" : NUMBER.format(value));
export const rate = (value) => (value === undefined || value === null ? "–" : RATE.format(value));
export const percent = (value) => (value === undefined || value === null ? "–" : PERCENT.format(value));

const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
export function age(seconds) {
  if (seconds === undefined || seconds === null) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  const [size, unit] = UNITS.find(([limit]) => seconds >= limit) ?? UNITS.at(-1);
  return `${RATE.format(seconds / size)} ${unit}`;
}

export function bytes(value) {
  if (value === undefined || value === null) return "–";
  const power = Math.min(Math.floor(Math.log2(Math.max(value, 1)) / 10), 4);
  return `${RATE.format(value / 1024 ** power)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

// Names and their values; what is undefined is left out. Values may be elements.
export function Facts({ of }) {
  const given = Object.entries(of).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<dl class="facts">${given.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd dir="auto">${value}</dd></div>`)}</dl>`;
}

// The end of an id tells two apart; the whole stands in the title and behind the row.
export const shortId = (id) => `${id.slice(0, 4)}…${id.slice(-8)}`;

export const Json = ({ of }) => html`<pre class="json" tabindex="0" dir="ltr">${JSON.stringify(of, null, 2)}</pre>`;
