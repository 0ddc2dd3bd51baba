// SPDX-License-Identifier: Apache-2.0
// Columns of consumers and processes, as /v1/ops/... has them.

import { html } from "../html.js";
import { age, bytes, number, Pill, rate, When } from "./show.js";

export const consumerId = (row) => `${row.stream} ${row.name}`;
export const CONSUMERS = [
  { name: "Consumer", show: (row) => html`<strong>${row.name}</strong>${!row.there && html` <${Pill} state="down" label="not there" />`}` },
  { name: "Stream", show: (row) => row.stream },
  { name: "Not done", end: true, show: (row) => number(row.lag) },
  { name: "Oldest", end: true, show: (row) => age(row.age_s) },
  { name: "In hand", end: true, show: (row) => number(row.in_hand) },
  { name: "Redelivered", end: true, show: (row) => number(row.redelivered) },
  { name: "Done a second", end: true, show: (row) => rate(row.per_s) },
];

export const processId = (row) => row.instance;
export const PROCESSES = [
  { name: "Service", show: (row) => html`<strong>${row.service}</strong>` },
  { name: "State", show: (row) => html`<${Pill} state=${row.state} /> ${row.why}` },
  { name: "Version", show: (row) => row.version },
  { name: "CPU", end: true, show: (row) => `${rate(row.cpu_percent)} %` },
  { name: "Memory", end: true, show: (row) => bytes(row.rss_bytes) },
  { name: "Done a second", end: true, show: (row) => rate(row.handled_per_s) },
  { name: "Since", show: (row) => html`<${When} at=${row.started_at} short />` },
  { name: "Heard", show: (row) => html`<${When} at=${row.heard_at} short />` },
  { name: "Instance", show: (row) => html`<span class="mono">${row.instance}</span>` },
];
