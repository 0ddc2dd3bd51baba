// SPDX-License-Identifier: Apache-2.0
// One template to many: the list of batches, the youngest first. One of them is batches/batch.js.

import { html, useEffect } from "../html.js";
import { Field } from "../parts/forms.js";
import { age, number, When } from "../parts/show.js";
import { Table } from "../parts/table.js";
import { go, refine } from "../router.js";
import { usePages } from "../use.js";
import { Batch, Progress, State } from "./batches/batch.js";

const STATUSES = ["", "draft", "scheduled", "running", "completed", "cancelled", "failed"];
const COLUMNS = [
  { name: "Name", show: (row) => html`<strong>${row.name}</strong>` },
  { name: "Status", show: (row) => html`<${State} of=${row} />` },
  { name: "Accepted", wide: true, show: (row) => html`<${Progress} of=${row} />` },
  { name: "Members", end: true, show: (row) => number(row.members) },
  { name: "Template", show: (row) => `${row.template} ${row.template_version}` },
  { name: "Channel", show: (row) => row.channel },
  { name: "A second", end: true, show: (row) => (row.rate_per_second > 0 ? number(row.rate_per_second) : "no limit") },
  { name: "Left", end: true, show: (row) => age(row.eta_seconds) },
  { name: "Made", show: (row) => html`<${When} at=${row.created_at} short />` },
];

function List({ route }) {
  const { status = "" } = route.query;
  const list = usePages("/v1/batches", { status });
  const moves = list.rows.length <= 100 && list.rows.some((row) => row.status === "running" && !row.paused);
  useEffect(() => {
    if (!moves) return undefined;
    const timer = setInterval(() => document.hidden || list.again(), 3_000);
    return () => clearInterval(timer);
  }, [moves, list.again]);
  return html`<h1>Batches</h1>
    <div class="filters"><${Field} label="Status" value=${status} choices=${STATUSES} set=${(value) => refine(route, { ...route.query, status: value })} /></div>
    <${Table} label="Batches" columns=${COLUMNS} list=${list} id=${(row) => row.id} open=${(row) => go("batches", [row.id])}
      empty=${status ? `No batch is ${status}.` : html`There is no batch. <code>stentor batch create</code> makes one, and <code>POST /v1/batches</code>.`} />`;
}

export default function Batches({ route, can }) {
  const id = route.parts[0];
  return id ? html`<${Batch} key=${id} id=${id} route=${route} can=${can} />` : html`<${List} route=${route} />`;
}
