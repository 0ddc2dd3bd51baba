// SPDX-License-Identifier: Apache-2.0
// An answer to "why": questions in the order in which it met them, what came out, and what that is known from.

import { html } from "../html.js";
import { Link } from "../router.js";
import { When } from "./show.js";

const TONES = { ok: "good", waits: "wait", stopped: "warn", failed: "bad", unknown: "none", note: "none" };
const SIGNS = { ok: "✓", waits: "◐", stopped: "▲", failed: "■", unknown: "?", note: "·" };
const WORDS = { ok: "passed", waits: "waits", stopped: "stopped here", failed: "failed", unknown: "not known", note: "beside the way" };
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const ID = /^(ntf|rcp|dbt)_[0-9A-HJKMNP-TV-Z]{26}$/;
const PLACES = { ntf: "find", rcp: "recipients", dbt: "batches" };

// A value of the evidence; what has a screen of its own leads there.
export function Evidence({ name, value }) {
  if (TIME.test(value)) return html`<${When} at=${value} />`;
  const screen = PLACES[ID.exec(value)?.[1]] ?? { template: "templates", sequence: "dead" }[name];
  return screen ? html`<${Link} to=${screen} parts=${[value]}>${value}</>` : html`<bdi>${value}</bdi>`;
}

export function Why({ of }) {
  return html`<ol class="why">${of.map(({ question, answer, outcome, evidence }, index) => html`<li key=${index} class=${TONES[outcome] ?? "none"}>
    <span class="sign" aria-hidden="true">${SIGNS[outcome] ?? "·"}</span>
    <div><span class="question">${question}</span> <strong dir="auto">${answer}</strong>
      <span class="hidden"> (${WORDS[outcome] ?? outcome})</span>
      ${Object.keys(evidence).length > 0 && html`<dl>${Object.entries(evidence).map(([name, value]) => html`<div key=${name}>
        <dt>${name.replaceAll("_", " ")}</dt> <dd><${Evidence} name=${name} value=${value} /></dd></div>`)}</dl>`}
    </div>
  </li>`)}</ol>`;
}

const DECISIONS = { send: "good", wait: "wait", digest: "wait", suppress: "warn" };

// Of POST .../explain.
export function Decision({ of }) {
  return html`<div class=${`answer ${DECISIONS[of.decision] ?? "none"}`} role="status"><p><strong dir="auto">${of.summary}</strong></p></div>
    <${Why} of=${of.why} />`;
}
