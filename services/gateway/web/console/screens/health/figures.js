// SPDX-License-Identifier: Apache-2.0
// How fast notifications are served, and what mailbox providers think of the mails.

import { html } from "../../html.js";
import { Tabs } from "../../parts/forms.js";
import { Answer } from "../../parts/notices.js";
import { age, Facts, number, percent, Pill, rate, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { useAnswer } from "../../use.js";

const EVERY_MS = 30_000;
const PARTS = [["accepted_to_queued", "Accepted to queued"], ["queued_to_rendered", "Queued to rendered"], ["rendered_to_sent", "Rendered to sent"], ["accepted_to_sent", "Accepted to sent"]];
const time = (ms) => (ms === null ? "–" : age(ms / 1000));

function Budget({ of, budget }) {
  if (budget.left === null) return html`<p>Nothing of this time is to be judged yet (${age(of.target_s)} old): no budget was used.</p>`;
  const word = budget.left > 0 ? "good" : "over";
  const left = budget.left >= 0 ? html`<strong>${percent(budget.left)}</strong> of the error budget is left` : html`the error budget is overdrawn by <strong>${percent(-budget.left)}</strong>`;
  return html`<p class="figure"><${Pill} state=${word} label=${budget.left > 0 ? "within the budget" : "overdrawn"} /> <strong>${percent(of.served_share)}</strong> served within ${age(of.target_s)}; the objective is ${percent(budget.objective)}.</p>
    <p><progress max="1" value=${Math.max(0, budget.left)} aria-label="What is left of the error budget"></progress> Of ${rate(budget.allowed)} that may be missed ${number(budget.missed)} were: ${left}.</p>`;
}

export function Slo({ from }) {
  const answer = useAnswer("/v1/ops/slo", { from }, { every: EVERY_MS });
  return html`<section class="panel" aria-labelledby="slo"><h2 id="slo">Service level</h2><${Answer} of=${answer}>${(of) => html`
    <${Budget} of=${of} budget=${of.budget} />
    <table aria-label="How long it takes"><thead><tr><td></td><th scope="col" class="end">Half of them</th><th scope="col" class="end">95 %</th><th scope="col" class="end">99 %</th></tr></thead>
      <tbody>${PARTS.map(([name, label]) => html`<tr key=${name}><th scope="row">${label}</th>
        ${["p50_ms", "p95_ms", "p99_ms"].map((each) => html`<td key=${each} class="end">${time(of[name][each])}</td>`)}</tr>`)}</tbody></table>
    <${Facts} of=${{ Notifications: number(of.notifications), Sent: number(of.sent), Failed: number(of.failed), "Not ended": number(of.open) }} />
    ${!of.whole && html`<p class="quiet">Of the newest ${number(of.notifications)}, back to <${When} at=${of.oldest_at} />.</p>`}`}</></section>`;
}

const WHO = {
  domain: [{ name: "From", show: (row) => row.from_domain }, { name: "Mailboxes at", show: (row) => row.provider }],
  vendor: [{ name: "Vendor", show: (row) => row.vendor }],
};
const RATES = [
  { name: "Level", show: (row) => html`<${Pill} state=${row.level} />` },
  { name: "Complaints", end: true, show: (row) => html`${percent(row.complaint_rate)} <span class="quiet">${number(row.complained)}</span>` },
  { name: "Bounces", end: true, show: (row) => html`${percent(row.bounce_rate)} <span class="quiet">${number(row.bounced)}</span>` },
  { name: "Sent", end: true, show: (row) => number(row.sent) },
  { name: "Delivered", end: true, show: (row) => number(row.delivered) },
];

export function Deliverability({ from, by, choose }) {
  const answer = useAnswer("/v1/ops/deliverability", { from, by }, { every: EVERY_MS });
  return html`<section aria-labelledby="deliverability"><h2 id="deliverability">Deliverability</h2>
    <${Tabs} label="By" now=${by} choose=${choose} tabs=${[{ id: "domain", label: "By mailbox provider" }, { id: "vendor", label: "By vendor" }]} />
    <${Answer} of=${answer}>${({ data, limits }) => html`
      <${Table} label="Rates" columns=${[...WHO[by], ...RATES]} list=${{ rows: data }} id=${(row) => `${row.from_domain} ${row.provider} ${row.vendor}`} empty="Nothing was sent in this time." />
      <p class="quiet">Complaints, as Gmail and Yahoo ask: below ${percent(limits.complaint_rate_warn)} is good, ${percent(limits.complaint_rate_over)} is over. ${
        ""}Bounces: below ${percent(limits.bounce_rate_warn)}, and ${percent(limits.bounce_rate_over)}. Of fewer than ${number(limits.few)} mails a rate says nothing.</p>`}</></section>`;
}
