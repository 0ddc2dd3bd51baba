// SPDX-License-Identifier: Apache-2.0
// What happened to a notification, step by step, and each attempt with the vendor's words.

import { at } from "../../api.js";
import { html, useState } from "../../html.js";
import { Tabs } from "../../parts/forms.js";
import { Empty, Trouble, Warning } from "../../parts/notices.js";
import { age, Facts, Json, Pill, Reason, When } from "../../parts/show.js";
import { usePages } from "../../use.js";

const VIEWS = [{ id: "compact", label: "Compact" }, { id: "full", label: "Full" }, { id: "json", label: "JSON" }];
const seconds = (from, to) => (Date.parse(to) - Date.parse(from)) / 1000;

// The way that it took: each status once, when it was reached first.
function Compact({ steps }) {
  const first = steps.filter((step, index) => steps.findIndex(({ status }) => status === step.status) === index);
  return html`<ol class="steps">${first.map((step, index) => html`<li key=${step.status}><${Pill} state=${step.status} />
    <span class="quiet">${index === 0 || !step.at || !first[index - 1].at ? html`<${When} at=${step.at} />` : `+ ${age(Math.max(0, seconds(first[index - 1].at, step.at)))}`}</span></li>`)}</ol>`;
}

function Full({ steps }) {
  return html`<ol class="steps full">${steps.map((step, index) => html`<li key=${index}>
    <span class="at">${step.at ? html`<${When} at=${step.at} />` : "–"}</span> <${Pill} state=${step.status} />
    <span>${step.attempt !== undefined && html`attempt ${step.attempt} by <bdi>${step.vendor}</bdi>: ${step.outcome} <code>${step.code}</code> `}
      ${step.until && html`until <${When} at=${step.until} /> `}
      ${step.reason_code && html`<${Reason} of=${step.reason_code} /> `}<bdi>${step.reason}</bdi></span></li>`)}</ol>`;
}

export function Timeline({ of }) {
  const [view, setView] = useState("compact");
  const { timeline: steps, attempts_left_out: left } = of;
  return html`<h3>Timeline</h3>
    <${Tabs} label="Timeline" tabs=${VIEWS} now=${view} choose=${setView} />
    <div role="tabpanel" aria-label=${VIEWS.find(({ id }) => id === view).label}>
      ${view === "compact" && html`<${Compact} steps=${steps} />`}
      ${view === "full" && html`<${Full} steps=${steps} />`}
      ${view === "json" && html`<${Json} of=${steps} />`}
      ${left > 0 && html`<p class="quiet">${left} earlier attempts are not steps here.</p>`}
    </div>`;
}

function Attempt({ of }) {
  return html`<li>
    <p><strong>${of.number}.</strong> <bdi>${of.vendor}</bdi> <${Pill} state=${of.outcome ?? "unknown"} />
      ${of.code && html` <code>${of.code}</code>`}${of.enhanced_code && html` <code>${of.enhanced_code}</code>`}
      <span class="quiet"> <${When} at=${of.started_at ?? of.finished_at} />${of.started_at && of.finished_at && `, took ${age(Math.max(0, seconds(of.started_at, of.finished_at)))}`}</span></p>
    ${of.reply && html`<pre dir="auto" tabindex="0" aria-label=${`The vendor's reply to attempt ${of.number}`}>${of.reply}</pre>`}
    ${of.was_unknown && html`<${Warning}>An earlier try of this attempt has an unknown outcome: it may have been sent twice.</>`}
    <${Facts} of=${{
      "Credential": of.credential, "Route": of.route, "Vendor's message id": of.vendor_message_id && html`<code>${of.vendor_message_id}</code>`,
      "The vendor asked to wait": of.retry_after_ms && age(of.retry_after_ms / 1000), "Segments": of.segments,
      "Cost": of.cost && `${of.cost} ${of.currency}${of.cost_estimated ? " (by the price list)" : ""}` }} />
  </li>`;
}

// The last 50; of those before, pages, the first one first.
export function Attempts({ of }) {
  const { attempts, attempts_left_out: left = 0 } = of;
  const [all, setAll] = useState(false);
  const list = usePages(all ? at`/v1/notifications/${of.id}/attempts` : undefined);
  const shown = all && list.rows.length > 0 ? list.rows : attempts;
  return html`<h3>Attempts</h3>
    ${attempts.length === 0 ? html`<${Empty}>It was not handed to a vendor.</>` : html`<ol class="attempts">${shown.map((attempt) => html`<${Attempt} key=${attempt.number} of=${attempt} />`)}</ol>`}
    <${Trouble} of=${list.problem} again=${list.again} />
    ${left > 0 && !all && html`<button type="button" onClick=${() => setAll(true)}>Show the ${left} before, too</button>`}
    ${all && list.next && html`<button type="button" disabled=${list.waiting} onClick=${list.more}>Show more</button>`}`;
}
