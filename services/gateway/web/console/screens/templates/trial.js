// SPDX-License-Identifier: Apache-2.0
// A version sent once to an address, and tried on what the last days' notifications were made of.

import { at, send } from "../../api.js";
import { html, useState } from "../../html.js";
import { Field } from "../../parts/forms.js";
import { Answer, Empty, Good, Trouble } from "../../parts/notices.js";
import { age, Facts, number, Pill, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { Who } from "../../parts/who.js";
import { Link } from "../../router.js";
import { useAct, useAnswer, usePages } from "../../use.js";
import { readJson } from "./document.js";

const query = (version) => `?channel=${encodeURIComponent(version.channel)}`;

export function TestSend({ version }) {
  const [to, setTo] = useState("");
  const [locale, setLocale] = useState(version.locales[0].locale);
  const [text, setText] = useState(() => JSON.stringify(version.sample ?? {}, null, 2));
  const { value, wrong } = readJson(text, "object");
  const act = useAct(() => send("POST", at`/v1/templates/${version.key}/${version.version}/test-send` + query(version), { to, locale, variables: value }));
  const wrongOf = (name) => act.problem?.fields.find(({ field }) => field === name)?.detail;
  return html`<form class="panel" onSubmit=${(event) => { event.preventDefault(); act.run(); }}>
    <h2>Send this version once</h2>
    <div class="filters"><${Field} label="To" value=${to} set=${setTo} required wrong=${wrongOf("to")} />
      <${Field} label="Locale" value=${locale} set=${setLocale} choices=${version.locales.map((each) => each.locale)} wrong=${wrongOf("locale")} /></div>
    <${Field} label="Variables" lines=${6} value=${text} set=${setText} dir="ltr" wrong=${(wrong && `This is not JSON that fits: ${wrong}`) ?? wrongOf("variables")} />
    <${Trouble} of=${act.problem} />
    ${act.done && html`<${Good}>Accepted as <${Link} to="find" parts=${[act.done.id]}>${act.done.id}</></>`}
    <p class="acts"><button class="main" disabled=${act.running || wrong !== undefined}>${act.running ? "Sending …" : "Send a test"}</button>
      <span class="quiet">Suppressions and limits count for it as for every notification.</span>
      <${Link} to="find" query=${{ q: `test-send/${version.key}/${version.version}`, as: "correlation_id" }}>All tests of this version</></p>
  </form>`;
}

// ---- shadow ----

const JOBS = [
  { name: "Asked", show: (row) => html`<${When} at=${row.created_at} short />` },
  { name: "Version", show: (row) => row.version },
  { name: "State", show: (row) => html`<${Pill} state=${row.state} />` },
  { name: "Days", end: true, show: (row) => row.days },
  { name: "Compared", end: true, show: (row) => number(row.progress?.compared) },
  { name: "By", show: (row) => html`<${Who} of=${row.asked_by} />` },
];
const MEANS = { "+": "added", "-": "removed", "@": "quiet", " ": "" };

function Difference({ of }) {
  return html`<section class="panel"><h3>${number(of.count)} differ so from ${of.version}; for example <${Link} to="find" parts=${[of.notification_id]}>${of.notification_id}</></h3>
    ${of.parts.map((part) => html`<h4 key=${part.part}>${part.part}</h4><pre class="diff" tabindex="0" dir="auto" aria-label=${`Difference of ${part.part}`}>${part.lines.map((line, index) => html`
      <span key=${index} class=${MEANS[line.op]}>${line.op === "@" ? line.text : `${line.op} ${line.text}`}\n</span>`)}</pre>`)}
    ${of.cut && html`<p class="quiet">${of.lines_left_out > 0 ? `${number(of.lines_left_out)} more lines are not shown.` : "Long lines are cut."}</p>`}</section>`;
}

function Result({ of }) {
  const skipped = Object.entries(of.skipped).filter(([, count]) => count > 0).map(([reason, count]) => `${number(count)} ${reason.replaceAll("_", " ")}`).join(", ");
  return html`<${Facts} of=${{ Compared: number(of.compared), Same: number(of.same), Different: number(of.different), "Would fail": number(of.failed), "Would work now": number(of.fixed),
      "Fail in both": number(of.failed_both), Skipped: skipped || "none", Took: age(of.seconds) }} />
    ${!of.complete && html`<p class="quiet">The limit was reached before the days were.</p>`}
    ${of.reasons.length > 0 && html`<h3>Why they would fail</h3><ul>${of.reasons.map(({ reason, count }) => html`<li key=${reason}>${number(count)}: ${reason}</li>`)}</ul>`}
    ${of.differences.map((each) => html`<${Difference} key=${each.notification_id} of=${each} />`)}
    ${of.other_differences > 0 && html`<p>${number(of.other_differences)} differ in other ways.</p>`}`;
}

function Job({ id, can, ended }) {
  const [over, setOver] = useState(false);
  const answer = useAnswer(at`/v1/shadows/${id}`, undefined, { every: over ? undefined : 1_000 });
  const state = answer.data?.state;
  const running = state === "waiting" || state === "running";
  if (state && !running && !over) { setOver(true); ended(); }
  const cancel = useAct(() => send("POST", at`/v1/shadows/${id}/cancel`));
  return html`<${Answer} of=${answer}>${(job) => html`<section class="panel" aria-label="Shadow">
    <h2>${job.version} beside what was sent <${Pill} state=${job.state} /></h2>
    ${running && html`<p role="status">${number(job.progress?.compared ?? 0)} of at most ${number(job.limit)} compared</p><progress max=${job.limit} value=${job.progress?.compared ?? 0} aria-label="Compared"></progress>
      ${can("templates:write") && html`<p class="acts"><button type="button" onClick=${() => cancel.run().then(answer.again)}>Cancel</button></p>`}`}
    ${job.error && html`<p class="notice bad">${job.error}</p>`}
    ${job.result && html`<${Result} of=${job.result} />`}</section>`}</>`;
}

export function Shadow({ version, can, job, choose }) {
  const [days, setDays] = useState("7");
  const [limit, setLimit] = useState("10000");
  const jobs = usePages("/v1/shadows", { template: version.key });
  const act = useAct(async () => {
    const made = await send("POST", at`/v1/templates/${version.key}/shadow` + query(version), { version: version.version, days: Number(days), limit: Number(limit) });
    choose(made.id);
    jobs.again();
    return made;
  });
  return html`<p>Renders again what the last days' notifications were made of, with ${version.version}, sends nothing, and says what would differ.</p>
    ${can("templates:write") && html`<form class="filters" onSubmit=${(event) => { event.preventDefault(); act.run(); }}>
      <${Field} label="Days" type="number" min="1" max="30" value=${days} set=${setDays} />
      <${Field} label="At most" type="number" min="1" max="100000" value=${limit} set=${setLimit} />
      <div><button class="main" disabled=${act.running}>${act.running ? "Asking …" : "Compare"}</button></div></form>`}
    <${Trouble} of=${act.problem} />
    ${job && html`<${Job} key=${job} id=${job} can=${can} ended=${jobs.again} />`}
    <h2>Comparisons of this template</h2>
    ${jobs.rows.length === 0 && !jobs.waiting && !jobs.problem ? html`<${Empty}>There is none yet.</>`
      : html`<${Table} label="Comparisons" columns=${JOBS} list=${jobs} id=${(row) => row.id} open=${(row) => choose(row.id)} chosen=${(row) => row.id === job} />`}`;
}
