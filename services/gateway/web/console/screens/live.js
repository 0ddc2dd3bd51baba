// SPDX-License-Identifier: Apache-2.0
// What happens now: the pipeline's stages and lanes once a second, and each status of the tenant as it comes.

import { html, useRef, useState } from "../html.js";
import { Chart } from "../parts/chart.js";
import { Field } from "../parts/forms.js";
import { CONSUMERS, consumerId, processId, PROCESSES } from "../parts/machines.js";
import { Answer, Empty, Trouble, Waiting } from "../parts/notices.js";
import { age, number, Pill, rate, When } from "../parts/show.js";
import { Table } from "../parts/table.js";
import { go, Link, refine } from "../router.js";
import { useAnswer, useStream } from "../use.js";
import { CHANNELS, STATUSES } from "../words.js";

const KEPT_SECONDS = 120;
const KEPT_ROWS = 200;
const BEHIND_S = 10; // of the oldest that waits
const STAGES = { accept: "Accept", render: "Render", send: "Send", record: "Record", wait: "Wait", hear: "Hear", post: "Post" };
const ABOUT = {
  accept: "takes requests and decides who may get them", render: "makes the content", send: "gives it to a vendor", record: "writes the history",
  wait: "holds digests and what is due later", hear: "takes the vendors' callbacks", post: "posts to webhooks" };

function Replicas({ of }) {
  const down = of.down + of.not_ready;
  return html`<span class="quiet" title=${`${of.ready} ready, ${of.not_ready} not ready, ${of.down} down`}>
    <span aria-hidden="true">${"●".repeat(Math.min(of.ready, 8))}${"○".repeat(Math.min(down, 8))}</span> ${of.ready} ready${down > 0 ? `, ${down} not` : ""}</span>`;
}

function Stage({ of, chosen, choose }) {
  const behind = of.age_s > BEHIND_S;
  return html`<li class=${behind ? "behind" : ""}>
    <h3><button type="button" aria-pressed=${chosen ? "true" : "false"} title=${ABOUT[of.stage]} onClick=${choose}>${STAGES[of.stage] ?? of.stage}</button></h3>
    <div><strong>${rate(of.out_per_s ?? of.in_per_s)}</strong> a second</div>
    ${of.in_per_s !== undefined && of.out_per_s !== undefined && html`<div class="quiet">${rate(of.in_per_s)} came in</div>`}
    <div class="quiet">${number(of.lag ?? 0)} not done${of.age_s > 0 ? `, oldest ${age(of.age_s)}` : ""}${behind ? " – behind" : ""}</div>
    ${of.p99_ms !== undefined && html`<div class="quiet">p99 ${age(of.p99_ms / 1000)}</div>`}
    <${Replicas} of=${of.replicas} />
  </li>`;
}

function Lanes({ lanes }) {
  const most = Math.max(1, ...lanes.map((lane) => lane.lag ?? 0));
  return html`<div class="lanes">${lanes.map(({ lane, lag = 0, age_s }) => html`<span>${lane}</span>
    <progress max=${most} value=${lag} aria-label=${`${lane} lane: ${lag} wait`}></progress>
    <span class="end">${number(lag)} wait</span><span class="quiet">${age_s > 0 ? `oldest ${age(age_s)}` : ""}</span>`)}</div>`;
}

// Processes and consumers of one stage.
function Machines({ service }) {
  const processes = useAnswer("/v1/ops/processes", undefined, { every: 2_000 });
  const consumers = useAnswer("/v1/ops/consumers", undefined, { every: 2_000 });
  const of = (rows, name) => rows.filter((row) => row[name] === service || row[name].startsWith(`${service}-`));
  return html`<h2>Processes of ${service}</h2>
    <${Answer} of=${processes}>${({ data }) => html`<${Table} label="Processes" columns=${PROCESSES} list=${{ rows: of(data, "service") }}
      id=${processId} empty="No process has been heard." />`}</>
    <h2>Consumers</h2>
    <${Answer} of=${consumers}>${({ data }) => html`<${Table} label="Consumers" columns=${CONSUMERS} list=${{ rows: of(data, "name") }}
      id=${consumerId} empty="This stage reads by no durable consumer." />`}</>`;
}

function Pipeline({ route }) {
  const [picture, setPicture] = useState();
  const past = useRef([]);
  const state = useStream("/v1/live/pipeline", undefined, ({ event, data }) => {
    if (event !== "pipeline") return;
    const stage = Object.fromEntries(data.stages.map((each) => [each.stage, each]));
    past.current = [...past.current, [Date.parse(data.at) / 1000, stage.accept?.out_per_s ?? stage.accept?.in_per_s ?? 0, stage.send?.out_per_s ?? 0]].slice(-KEPT_SECONDS);
    setPicture(data);
  });
  const chosen = picture?.stages.find(({ stage }) => stage === route.query.stage);
  const choose = (stage) => refine(route, { ...route.query, stage: stage === route.query.stage ? undefined : stage });
  return html`<section aria-labelledby="pipeline"><h2 id="pipeline">Pipeline</h2>
    ${typeof state === "object" && html`<${Trouble} of=${state} />`}
    ${state === "lost" && html`<p class="notice warn" role="status">The stream was lost; the console comes back to it by itself.</p>`}
    ${!picture && state !== "lost" && typeof state !== "object" && html`<${Waiting} what="Asking JetStream" />`}
    ${picture && html`<ul class="stages">${picture.stages.map((each) => html`<${Stage} key=${each.stage} of=${each} chosen=${chosen === each} choose=${() => choose(each.stage)} />`)}</ul>
      <div class="columns"><div class="panel"><h3>Lanes</h3><${Lanes} lanes=${picture.lanes} /></div>
        <div class="panel"><h3>The last two minutes</h3><${Chart} label="Accepted and sent a second" times=${past.current.map(([time]) => time)}
          series=${[{ label: "accepted a second", values: past.current.map((row) => row[1]) }, { label: "sent a second", values: past.current.map((row) => row[2]) }]} /></div></div>`}
    ${chosen && html`<${Machines} service=${chosen.service} />`}
  </section>`;
}

const EVENTS = [
  { name: "When", show: ({ timestamp }) => html`<${When} at=${timestamp} short />` },
  { name: "Status", show: ({ data }) => html`<${Pill} state=${data.status} />` },
  { name: "Channel", show: ({ data }) => data.channel },
  { name: "Template", show: ({ data }) => data.template?.key ?? data.template ?? "" },
  { name: "Notification", show: ({ data }) => html`<span class="mono">${data.id}</span>` },
  { name: "Reason", wide: true, show: ({ data }) => data.reason ?? data.error?.message ?? "" },
];

function Statuses({ route }) {
  const { status = "", channel = "" } = route.query;
  const [rows, setRows] = useState([]);
  const [held, setHeld] = useState(false);
  const holding = useRef(false);
  const [missed, setMissed] = useState(0);
  const set = (change) => { setRows([]); refine(route, { ...route.query, ...change }); };
  const state = useStream("/v1/live/status", { status, channel }, ({ event, data, id }) => {
    if (event !== "status") return;
    if (holding.current) setMissed((count) => count + 1);
    else setRows((before) => [{ ...data, id }, ...before].slice(0, KEPT_ROWS));
  });
  const hold = () => { holding.current = !held; setHeld(!held); setMissed(0); };
  return html`<section aria-labelledby="statuses"><h2 id="statuses">Statuses as they come</h2>
    <div class="filters">
      <${Field} label="Status" value=${status} set=${(value) => set({ status: value })} choices=${STATUSES} />
      <${Field} label="Channel" value=${channel} set=${(value) => set({ channel: value })} choices=${["", ...CHANNELS]} />
      <div><button type="button" aria-pressed=${held ? "true" : "false"} onClick=${hold}>${held ? `Go on (${number(missed)} came meanwhile)` : "Hold"}</button></div>
    </div>
    ${typeof state === "object" && html`<${Trouble} of=${state} />`}
    ${state === "lost" && html`<p class="notice warn" role="status">The stream was lost; what happens meanwhile comes when it is back.</p>`}
    ${rows.length === 0 ? html`<${Empty}>${state === "open" ? html`Nothing has happened since you opened this. <${Link} to="find">Find</> shows what was before.` : "Opening the stream …"}</>`
      : html`<${Table} label="Statuses" columns=${EVENTS} list=${{ rows }} id=${(row) => row.id} open=${(row) => go("find", [row.data.id])} />`}
  </section>`;
}

export default function Live({ route, can }) {
  return html`<h1>Live</h1>${can("ops:read") && html`<${Pipeline} route=${route} />`}<${Statuses} route=${route} />`;
}
