// SPDX-License-Identifier: Apache-2.0
// Streams, consumers, processes: what all tenants share.

import { html } from "../../html.js";
import { Tabs } from "../../parts/forms.js";
import { CONSUMERS, consumerId, processId, PROCESSES } from "../../parts/machines.js";
import { Answer } from "../../parts/notices.js";
import { bytes, number, percent, Pill, rate, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { useAnswer } from "../../use.js";

const EVERY_MS = 5_000;

function Room({ of }) {
  if (of.max_bytes === undefined || of.max_bytes === 0) return html`${bytes(of.bytes)}`;
  return html`<span class="progress"><progress max=${of.max_bytes} value=${of.bytes ?? 0} aria-label=${`${of.name}: ${bytes(of.bytes)} of ${bytes(of.max_bytes)}`}></progress>
    <span class="quiet">${bytes(of.bytes)} of ${bytes(of.max_bytes)}, ${percent((of.bytes ?? 0) / of.max_bytes)}</span></span>`;
}

const VIEWS = {
  streams: { label: "Streams", path: "/v1/ops/streams", id: (row) => row.name, columns: [
    { name: "Stream", show: (row) => html`<strong>${row.name}</strong>${!row.there && html` <${Pill} state="down" label="not there" />`}` },
    { name: "Room", wide: true, show: (row) => html`<${Room} of=${row} />` },
    { name: "Events", end: true, show: (row) => number(row.events) },
    { name: "Stored a second", end: true, show: (row) => rate(row.per_s) },
    { name: "Oldest", show: (row) => html`<${When} at=${row.first_at} short />` },
    { name: "Newest", show: (row) => html`<${When} at=${row.last_at} short />` },
    { name: "Replicas", end: true, show: (row) => number(row.replicas) },
    { name: "Subjects", show: (row) => html`<span class="mono">${row.subjects}</span>` },
  ] },
  consumers: { label: "Consumers", path: "/v1/ops/consumers", id: consumerId, columns: CONSUMERS },
  processes: { label: "Processes", path: "/v1/ops/processes", id: processId, columns: PROCESSES },
};

export function Machines({ now, choose }) {
  const id = VIEWS[now] ? now : "streams";
  const view = VIEWS[id];
  const answer = useAnswer(view.path, undefined, { every: EVERY_MS });
  return html`<section aria-labelledby="machines"><h2 id="machines">Streams and machines</h2>
    <${Tabs} label="View" now=${id} choose=${choose} tabs=${Object.entries(VIEWS).map(([key, { label }]) => ({ id: key, label }))} />
    <${Answer} of=${answer} what="Asking JetStream">${({ data }) => html`<${Table} key=${id} label=${view.label} columns=${view.columns} list=${{ rows: data }} id=${view.id} />`}</></section>`;
}
