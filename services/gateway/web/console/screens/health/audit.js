// SPDX-License-Identifier: Apache-2.0
// Every record reconciled, as a job: accepted = sent + failed + suppressed + in flight + unsettled.

import { at, send } from "../../api.js";
import { html, useEffect, useState } from "../../html.js";
import { Field } from "../../parts/forms.js";
import { Answer, Trouble, Warning } from "../../parts/notices.js";
import { age, number, Pill, rate, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { Who } from "../../parts/who.js";
import { useAct, useAnswer } from "../../use.js";

const DAY_MS = 86_400_000;
const SPANS = ["1", "2", "3", "7"].map((value) => ({ value, label: value === "1" ? "24 hours" : `${value} days` }));
const TERMS = [["sent", "sent"], ["failed", "failed"], ["suppressed", "suppressed"], ["in_flight", "in flight"], ["unsettled", "unsettled"]];
const over = (job) => ["done", "failed"].includes(job?.state);
const sound = (result) => result.lost === 0 && result.doubled === 0 && result.unsettled === 0;

function Result({ of }) {
  const { result } = of;
  return html`<p class="sum"><strong>${number(result.accepted)}</strong> accepted = ${TERMS.map(([name, word], index) => html`${index > 0 && " + "}<strong>${number(result[name])}</strong> ${word}`)}</p>
    <p class="figure"><${Pill} state=${result.lost === 0 ? "good" : "over"} label=${html`lost ${number(result.lost)}`} />${" "}<${Pill} state=${result.doubled === 0 ? "good" : "over"} label=${html`doubled ${number(result.doubled)}`} />${" "}
      <${Pill} state=${result.unknown === 0 ? "good" : "warn"} label=${html`unknown ${number(result.unknown)}`} /></p>
    <p class="quiet">${number(result.records)} records in ${rate(result.seconds)} s, of <${When} at=${of.from} /> to <${When} at=${of.to} />.
      ${result.oldest_in_flight_at && html` The oldest in flight is of <${When} at=${result.oldest_in_flight_at} />.`}</p>
    ${!sound(result) && html`<${Warning}>What is lost, doubled or unsettled is listed by <code>stentor audit</code>.</>`}`;
}

function Running({ of }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const since = (now - Date.parse(of.started_at ?? of.created_at)) / 1000;
  return html`<p role="status"><${Pill} state=${of.state} /> ${of.state === "waiting" ? "It waits for its turn" : "It reads"}${since >= 1 && ` since ${age(Math.floor(since))}`}.${of.tries > 1 && ` Try ${of.tries}.`}</p>
    <progress aria-label="The audit is under way"></progress>`;
}

const COLUMNS = [
  { name: "Asked", show: (row) => html`<${When} at=${row.created_at} short />` },
  { name: "State", show: (row) => html`<${Pill} state=${row.state} />` },
  { name: "Accepted", end: true, show: (row) => number(row.result?.accepted) },
  { name: "Lost", end: true, show: (row) => number(row.result?.lost) },
  { name: "Doubled", end: true, show: (row) => number(row.result?.doubled) },
  { name: "Unsettled", end: true, show: (row) => number(row.result?.unsettled) },
  { name: "By", show: (row) => html`<${Who} of=${row.asked_by} />` },
];

// The one that is under way, else the one that was chosen, else the newest that is done.
function useShown(list) {
  const [chosen, choose] = useState();
  const rows = list.data?.data ?? [];
  const id = chosen ?? rows.find((row) => !over(row))?.id ?? rows.find((row) => row.state === "done")?.id ?? rows[0]?.id;
  const known = rows.find((row) => row.id === id);
  const asked = useAnswer(id && !over(known) ? at`/v1/ops/audits/${id}` : undefined, undefined, { every: 1_000 });
  const job = over(known) ? known : asked.data ?? known;
  useEffect(() => { if (over(asked.data) && !over(known)) list.again(); }, [asked.data]);
  return { job, problem: asked.problem, choose };
}

export function Audit() {
  const list = useAnswer("/v1/ops/audits", { limit: 10 });
  const [days, setDays] = useState("1");
  const { job, problem, choose } = useShown(list);
  const act = useAct(async () => {
    const made = await send("POST", "/v1/ops/audits", { from: new Date(Date.now() - Number(days) * DAY_MS + 60_000).toISOString() });
    choose(made.id);
    list.again();
    return made;
  });
  return html`<section class="panel" aria-labelledby="audit"><h2 id="audit">Nothing lost, nothing doubled</h2>
    <${Answer} of=${list}>${({ data }) => html`
      ${job === undefined && html`<p>No audit was made in the last 30 days.</p>`}
      ${job && !over(job) && html`<${Running} of=${job} />`}
      ${job?.state === "failed" && html`<div class="notice bad" role="alert"><strong>It could not be made.</strong> <span dir="auto">${job.error}</span></div>`}
      ${job?.state === "done" && html`<${Result} of=${job} />`}
      <${Trouble} of=${problem} /><${Trouble} of=${act.problem} />
      <div class="filters"><${Field} label="Of the last" value=${days} choices=${SPANS} set=${setDays} />
        <div><button type="button" class="main" disabled=${act.running || (job !== undefined && !over(job))} onClick=${() => act.run()}>Audit now</button></div></div>
      ${data.length > 0 && html`<details><summary>The last ${number(data.length)}</summary>
        <${Table} label="Audits" columns=${COLUMNS} list=${{ rows: data }} id=${(row) => row.id} chosen=${(row) => row.id === job?.id} open=${(row) => choose(row.id)} /></details>`}`}</></section>`;
}
