// SPDX-License-Identifier: Apache-2.0
// The search box and the filters of Find, and the question that they ask the API.

import { html, useEffect, useState } from "../../html.js";
import { Field } from "../../parts/forms.js";
import { go, refine } from "../../router.js";
import { CATEGORIES, CHANNELS, STATUSES, UNHAPPY } from "../../words.js";
import { idOf, KINDS, valueOf } from "./guess.js";

const HOUR_MS = 3_600_000;
const SPANS = { "1h": 1, "24h": 24, "7d": 168, "30d": 720 };

// An index serves it; else a span of a day is the most that the API looks through.
export const isIndexed = ({ q, template, batch, status }) => Boolean(q || template || batch || UNHAPPY.includes(status));

function spanOf(query) {
  if (query.when === "own") return { from: query.from && new Date(query.from).toISOString(), to: query.to && new Date(query.to).toISOString() };
  const hours = SPANS[query.when] ?? (isIndexed(query) ? 0 : 24);
  if (hours === 0) return {};
  const to = Date.now() + 60_000; // the browser's clock may be behind
  return { from: new Date(to - (isIndexed(query) ? hours : Math.min(hours, 24)) * HOUR_MS).toISOString(), to: new Date(to).toISOString() };
}

// Of this view's query, where the search text is a `kind`.
export function questionOf(query, kind) {
  const { status, channel, template, category, batch } = query;
  return { status, channel, template, category, batch_id: batch, ...(kind && { [kind]: valueOf(kind, query.q) }), ...spanOf(query) };
}

export function Search({ route }) {
  const { q = "", as = "" } = route.query;
  const [text, setText] = useState(q);
  useEffect(() => setText(q), [q]);
  const submit = (event) => {
    event.preventDefault();
    const typed = text.trim();
    const id = idOf(typed, "ntf_");
    if (id) go("find", [id]);
    else go("find", [], { ...route.query, q: typed });
  };
  return html`<form class="search" role="search" onSubmit=${submit}>
    <${Field} label="Address, id of a notification, recipient, order or batch, or a vendor's message id" value=${text} set=${setText} type="search" maxlength="4096"
      dir="auto" spellcheck=${false} />
    <${Field} label="Which is" value=${as} set=${(value) => refine(route, { ...route.query, q: text.trim(), as: value })}
      choices=${[{ value: "", label: "by its form" }, ...Object.entries(KINDS).map(([value, label]) => ({ value, label }))]} />
    <button type="submit" class="main">Find</button>
  </form>`;
}

// A text that counts when it is left or Enter is pressed.
function Late({ value = "", set, ...rest }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return html`<${Field} ...${rest} value=${text} set=${setText} onChange=${(event) => set(event.target.value.trim())} />`;
}

export function Filters({ route }) {
  const { query } = route;
  const set = (change) => refine(route, { ...query, ...change });
  return html`<div class="filters">
    <${Field} label="Status" value=${query.status} set=${(status) => set({ status })} choices=${STATUSES} />
    <${Field} label="Channel" value=${query.channel} set=${(channel) => set({ channel })} choices=${["", ...CHANNELS]} />
    <${Field} label="Category" value=${query.category} set=${(category) => set({ category })} choices=${["", ...CATEGORIES]} />
    <${Late} label="Template" value=${query.template} set=${(template) => set({ template })} maxlength="64" />
    <${Late} label="Batch" value=${query.batch} set=${(batch) => set({ batch })} placeholder="dbt_…" maxlength="64" />
    <${Field} label="Accepted" value=${query.when} set=${(when) => set({ when, from: "", to: "" })} choices=${[
      { value: "", label: isIndexed(query) ? "whenever" : "in the last day" }, { value: "1h", label: "in the last hour" }, { value: "24h", label: "in the last day" },
      { value: "7d", label: "in the last week" }, { value: "30d", label: "in the last 30 days" }, { value: "own", label: "from … to" }]} />
    ${query.when === "own" && html`
      <${Field} label="From" type="datetime-local" value=${query.from} set=${(from) => set({ from })} />
      <${Field} label="To" type="datetime-local" value=${query.to} set=${(to) => set({ to })} />`}
  </div>`;
}
