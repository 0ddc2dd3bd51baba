// SPDX-License-Identifier: Apache-2.0
// One batch: how far it is, its commands, its members, and what became of its notifications.

import { at } from "../../api.js";
import { html, useEffect, useState } from "../../html.js";
import { Field } from "../../parts/forms.js";
import { Answer, Empty, Warning } from "../../parts/notices.js";
import { age, Facts, Json, number, percent, Pill, Reason, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { Who } from "../../parts/who.js";
import { go, Link, refine } from "../../router.js";
import { useAnswer, usePages } from "../../use.js";
import { Commands } from "./commands.js";
import { Members } from "./members.js";

const RUNS_MS = 2_000;
const RESTS_MS = 5_000;
const STATUSES = ["", "failed", "bounced", "complained", "suppressed", "unknown", "sent", "delivered", "queued", "scheduled", "cancelled", "expired"];

export const State = ({ of }) => html`<${Pill} state=${of.status} />${of.paused && html` <${Pill} state="paused" />`}`;

export function Progress({ of }) {
  const share = of.members > 0 ? of.accepted / of.members : undefined;
  return html`<span class="progress"><progress max=${Math.max(of.members, 1)} value=${of.accepted} aria-label=${`${of.accepted} of ${of.members} members are accepted`}></progress>
    <span class="end">${number(of.accepted)}${share !== undefined && html` <span class="quiet">${percent(share)}</span>`}</span></span>`;
}

function Head({ of }) {
  const chooses = of.recipient_query !== undefined && of.chosen === false;
  if (["draft", "scheduled"].includes(of.status)) return html`<p>It has not started.${of.recipient_query === undefined && ` It has ${number(of.members)} ${of.members === 1 ? "member" : "members"}.`}</p>`;
  return html`<p class="big"><${Progress} of=${of} /></p>
    <p>${number(of.accepted)} of ${number(of.members)} members are accepted.
      ${of.eta_seconds !== undefined && html` About <strong>${age(of.eta_seconds)}</strong> left.`}
      ${chooses && of.status === "running" && html` The members are still being chosen by its query.`}
      ${of.paused && " Paused: nothing more is accepted until it is resumed."}</p>
    ${of.reason && html`<${Warning}><span dir="auto">${of.reason}</span></>`}`;
}

function Totals({ of, status, choose }) {
  const rows = Object.entries(of).sort(([, one], [, other]) => other - one);
  if (rows.length === 0) return html`<${Empty}>History has no notification of it yet.</>`;
  const most = rows[0][1];
  return html`<table aria-label="Totals by status"><tbody>${rows.map(([name, count]) => html`<tr key=${name}>
    <th scope="row"><button type="button" class="bare" aria-pressed=${name === status ? "true" : "false"} onClick=${() => choose(name === status ? "" : name)}><${Pill} state=${name} /></button></th>
    <td class="end">${number(count)}</td><td class="bar"><progress max=${most} value=${count} aria-label=${`${name}: ${count}`}></progress></td></tr>`)}</tbody></table>`;
}

const NOTIFICATIONS = [
  { name: "Accepted", show: (row) => html`<${When} at=${row.created_at} short />` },
  { name: "Status", show: (row) => (row.status ? html`<${Pill} state=${row.status} />` : html`<span class="quiet">not in history</span>`) },
  { name: "Notification", show: (row) => html`<span class="mono">${row.id}</span>` },
  { name: "Reason", wide: true, show: (row) => html`<${Reason} of=${row.reason_code} /> ${row.reason}` },
];

// What an empty list waits for, as the API says it.
const WAITS = {
  start: "There is none yet: the batch waits for its start.", scheduled_for: "There is none yet: the batch waits for its time.",
  acceptance: "There is none yet: its first members are being accepted.", resume: "There is none yet: the batch is paused.",
  index: "There is none here yet: the search index is behind.", null: "It has no notification, and none comes." };

function Notifications({ id, status, choose, there }) {
  const list = usePages(there ? at`/v1/batches/${id}/notifications` : undefined, { status });
  return html`<section aria-labelledby="made"><h2 id="made">Notifications</h2>
    <div class="filters"><${Field} label="Status" value=${status} choices=${STATUSES} set=${choose} />
      <div><button type="button" onClick=${list.again} disabled=${!there}>Look again</button></div></div>
    <${Table} label="Notifications of the batch" columns=${NOTIFICATIONS} list=${list} id=${(row) => row.id} open=${(row) => go("find", [row.id])}
      empty=${!there ? "There is no notification of it yet." : WAITS[list.about?.waits_for] ?? "None is like this."} />
  </section>`;
}

function About({ of }) {
  return html`<${Facts} of=${{
    Batch: html`<span class="mono">${of.id}</span>`, Template: html`<${Link} to="templates" parts=${[of.template]}>${of.template}</> ${of.template_version}`,
    Channel: of.channel, Category: of.category, Priority: of.priority, Locale: of.locale,
    Pace: of.rate_per_second > 0 ? `${number(of.rate_per_second)} a second` : "no limit", "Broken lines": number(of.broken_lines),
    "Checkpoint": `chunk ${number(of.checkpoint.chunk)} of ${number(of.checkpoint.chunks)}`, Consent: of.consent?.source,
    Made: html`<${When} at=${of.created_at} /> by <${Who} of=${of.created_by} />`, "Scheduled for": of.scheduled_for && html`<${When} at=${of.scheduled_for} />`,
    Started: of.started_at && html`<${When} at=${of.started_at} />`, Ended: of.ended_at && html`<${When} at=${of.ended_at} />` }} />
    ${of.recipient_query !== undefined && html`<h3>Whom its query chooses</h3><${Json} of=${of.recipient_query} />`}`;
}

export function Batch({ id, route, can }) {
  const [runs, setRuns] = useState(false);
  const answer = useAnswer(at`/v1/batches/${id}`, undefined, { every: runs ? RUNS_MS : RESTS_MS });
  const batch = answer.data;
  useEffect(() => { setRuns(batch?.status === "running" && !batch.paused); }, [batch]);
  const { status = "" } = route.query;
  const choose = (value) => refine(route, { ...route.query, status: value });
  return html`<p><${Link} to="batches">All batches</></p>
    <h1 dir="auto">${batch ? batch.name : "Batch"}</h1>
    <${Answer} of=${answer}>${(of) => html`
      <p><${State} of=${of} /></p>
      <${Head} of=${of} />
      ${can("batches:write") && html`<${Commands} of=${of} did=${answer.again} />`}
      <div class="columns">
        <div class="panel"><h2>The batch</h2><${About} of=${of} /></div>
        ${of.started_at && html`<div class="panel"><h2>By status</h2><${Totals} of=${of.totals ?? {}} status=${status} choose=${choose} /></div>`}
      </div>
      ${of.status === "draft" && of.recipient_query === undefined && can("batches:write") && html`<${Members} of=${of} did=${answer.again} />`}
      ${of.started_at && can("notifications:read") && html`<${Notifications} id=${id} status=${status} choose=${choose} there=${of.accepted > 0} />`}`}</>`;
}
