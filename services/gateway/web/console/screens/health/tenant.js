// SPDX-License-Identifier: Apache-2.0
// What a tenant has sent and paid, what it may still send, and which of its keys end soon.

import { html, useState } from "../../html.js";
import { Chart } from "../../parts/chart.js";
import { Tabs } from "../../parts/forms.js";
import { Answer, Empty } from "../../parts/notices.js";
import { Facts, number, Pill, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { useAnswer } from "../../use.js";

const DAY_MS = 86_400_000;
const SOON_MS = 30 * DAY_MS;
const costs = (row) => [...row.costs.map(({ cost, currency }) => `${cost} ${currency}`), row.unpriced > 0 && `${number(row.unpriced)} without a price`].filter(Boolean).join(", ");

const USAGE = ["Notifications", "Sent", "Delivered", "Failed", "Suppressed", "Bounced", "Complained", "Waiting"].map((name) => (
  { name, end: true, show: (row) => number(row[name.toLowerCase()]) }));
const COSTS = { name: "Costs", show: costs };

// Each day of the span: one without a notification has no row.
function byDay({ from, to, data }) {
  const rows = new Map(data.map((row) => [row.day, row]));
  const days = [];
  for (let day = Date.parse(from.slice(0, 10)); day <= Date.parse(to); day += DAY_MS) days.push(day);
  const of = (name) => days.map((day) => rows.get(new Date(day).toISOString().slice(0, 10))?.[name] ?? 0);
  return { times: days.map((day) => day / 1000), series: [{ label: "notifications", values: of("notifications") }, { label: "sent", values: of("sent") }, { label: "failed", values: of("failed") }] };
}

export function Usage({ from }) {
  const [by, setBy] = useState("day");
  const answer = useAnswer("/v1/usage", { from, by });
  const named = { name: by === "day" ? "Day (UTC)" : by === "channel" ? "Channel" : "Category", show: (row) => row[by] };
  return html`<section class="panel" aria-labelledby="usage"><h2 id="usage">Usage</h2>
    <${Tabs} label="By" now=${by} choose=${setBy} tabs=${[{ id: "day", label: "By day" }, { id: "channel", label: "By channel" }, { id: "category", label: "By category" }]} />
    <${Answer} of=${answer}>${(of) => html`
      ${by === "day" && of.by === "day" && of.data.length > 0 && html`<${Chart} label="Notifications, sent and failed ones by day; the table has the numbers" ...${byDay(of)} />`}
      <${Table} label=${`Usage by ${by}`} columns=${[named, ...USAGE, COSTS]} list=${{ rows: of.data }} id=${(row) => row[by]} empty="Nothing was accepted in this time." />`}</></section>`;
}

const WINDOWS = { per_minute: "a minute", per_day: "a day" };
const bound = (of) => Object.entries(WINDOWS).filter(([name]) => of[name] > 0).map(([name, word]) => `${number(of[name])} ${word}`).join(", ");

function Used({ name, of }) {
  return Object.entries(WINDOWS).filter(([window]) => of[window]).map(([window, word]) => html`<p key=${window}>${name}, ${word}: <strong>${number(of[window].used)}</strong> of ${number(of[window].limit)}, ${number(of[window].left)} left
    <progress max=${Math.max(of[window].limit, 1)} value=${Math.min(of[window].used, of[window].limit)} aria-label=${`${name}, ${word}: ${of[window].used} of ${of[window].limit}`}></progress></p>`);
}

export function Limits() {
  const answer = useAnswer("/v1/limits", undefined, { every: 10_000 });
  return html`<section class="panel" aria-labelledby="limits"><h2 id="limits">Limits</h2><${Answer} of=${answer}>${(of) => html`
    ${of.tenant && html`<${Used} name="All channels" of=${of.tenant} />`}
    ${Object.entries(of.channels).map(([channel, windows]) => html`<${Used} key=${channel} name=${channel} of=${windows} />`)}
    ${!of.tenant && Object.keys(of.channels).length === 0 && html`<p>The tenant has no limit.</p>`}
    <${Facts} of=${{ "To one recipient": of.recipient && bound(of.recipient), ...Object.fromEntries(Object.entries(of.recipient_channels).map(([channel, each]) => [`${channel} to one recipient`, bound(each)])),
      "Beyond a limit": of.over_limit === "defer" ? "waits for a later minute or day" : "is suppressed" }} />`}</></section>`;
}

const KEYS = [
  { name: "Key", show: (row) => html`<span class="mono">${row.key_id}</span>` },
  { name: "Name", show: (row) => html`<strong>${row.name}</strong>` },
  { name: "State", show: (row) => html`<${Pill} state=${row.state} />` },
  { name: "Ends", show: (row) => html`<${When} at=${ends(row)} />` },
  { name: "Last used", show: (row) => html`<${When} at=${row.last_used_at} />` },
  { name: "Scopes", wide: true, show: (row) => row.scopes.join(" ") },
];
const ends = (row) => [row.revoked_at, row.expires_at].filter(Boolean).sort()[0];

export function Keys() {
  const answer = useAnswer("/v1/api-keys", { limit: 1_000 });
  return html`<section aria-labelledby="keys"><h2 id="keys">API keys that end soon</h2><${Answer} of=${answer}>${({ data, next }) => {
    const soon = data.filter((row) => ends(row) && Date.parse(ends(row)) < Date.now() + SOON_MS).sort((one, other) => ends(one).localeCompare(ends(other)));
    return html`${soon.length === 0 ? html`<${Empty}>No key ends within 30 days.</>` : html`<${Table} label="Keys" columns=${KEYS} list=${{ rows: soon }} id=${(row) => row.key_id} />`}
      ${next && html`<p class="quiet">Of the first ${number(data.length)} keys of the tenant.</p>`}`;
  }}</></section>`;
}
