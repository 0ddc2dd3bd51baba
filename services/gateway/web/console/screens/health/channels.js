// SPDX-License-Identifier: Apache-2.0
// Each vendor that can send or was stopped, and how it stands; suspended and resumed by an operator.

import { at, send } from "../../api.js";
import { html, useState } from "../../html.js";
import { Confirm, Field } from "../../parts/forms.js";
import { Moment } from "../../parts/moment.js";
import { Answer } from "../../parts/notices.js";
import { Pill, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { Who } from "../../parts/who.js";
import { useAct, useAnswer } from "../../use.js";

const EVERY_MS = 10_000;
const STATES = { active: "good", degraded: "warn", down: "down", disabled: "paused" };
const stopped = ({ status }) => status === "disabled";
const shown = (row) => row.usable || row.status !== "active";

const COLUMNS = [
  { name: "Vendor", show: (row) => html`<strong>${row.vendor}</strong>` },
  { name: "Channel", show: (row) => row.channel },
  { name: "Of", show: (row) => row.of },
  { name: "State", show: (row) => html`<${Pill} state=${STATES[row.status]} label=${stopped(row) ? "suspended" : row.status} />` },
  { name: "Since", show: (row) => html`<${When} at=${row.since} short />` },
  { name: "Until", show: (row) => (stopped(row) && !row.until ? "it is resumed" : html`<${When} at=${row.until} short />`) },
  { name: "Credential", show: (row) => row.credential ?? "–" },
  { name: "By", show: (row) => html`<${Who} of=${row.noted_by} />` },
  { name: "Reason", wide: true, show: (row) => row.reason ?? "" },
];

function Suspend({ of, whose, close, again }) {
  const [given, setGiven] = useState({ reason: "" });
  const set = (change) => setGiven({ ...given, ...change });
  const act = useAct(async () => {
    await send("POST", at`/v1/channels/${of.vendor}/suspend`, { reason: given.reason.trim(), ...(given.until && { until: given.until }) });
    again();
    return true;
  });
  const wrong = (field) => act.problem?.fields.find((each) => each.field === field)?.detail;
  return html`<${Confirm} title=${`Suspend ${of.vendor}?`} yes="Suspend it" act=${act} close=${close} disabled=${given.reason.trim() === ""}>
    <p>Nothing of ${whose} goes by it until then. What a route leads to another vendor takes that one; the rest waits, five minutes at a time.</p>
    <div class="filters">
      <${Field} label="Why" value=${given.reason} set=${(reason) => set({ reason })} maxlength="200" wrong=${wrong("reason")} />
      <${Moment} label="Until (else until it is resumed)" value=${given.until} set=${(until) => set({ until })} wrong=${wrong("until")} />
    </div></>`;
}

function Resume({ of, close, again }) {
  const act = useAct(async () => { await send("POST", at`/v1/channels/${of.vendor}/resume`); again(); return true; });
  return html`<${Confirm} title=${`Resume ${of.vendor}?`} yes="Resume it" act=${act} close=${close}><p>What waits for it goes out within minutes.</p></>`;
}

// Tenant platform suspends the installation's vendors, another one its own.
export function Channels({ tenant, can }) {
  const list = useAnswer("/v1/channels", undefined, { every: EVERY_MS });
  const [asking, ask] = useState();
  const platform = tenant === "" || tenant === "platform";
  const may = (row) => can("tenants:operate") && row.of === (platform ? "platform" : "tenant");
  const end = () => ask(undefined);
  const acts = { name: "Act", show: (row) => may(row) && html`<button type="button" aria-label=${`${stopped(row) ? "Resume" : "Suspend"} ${row.vendor}`} onClick=${() => ask(row)}>${
    stopped(row) ? "Resume …" : "Suspend …"}</button>` };
  return html`<section aria-labelledby="channels"><h2 id="channels">Channels and their vendors</h2><${Answer} of=${list}>${({ data }) => {
    const others = data.filter((row) => !shown(row)).map((row) => row.vendor);
    return html`<${Table} label="Vendors" columns=${data.some(may) ? [...COLUMNS.slice(0, 4), acts, ...COLUMNS.slice(4)] : COLUMNS} list=${{ rows: data.filter(shown) }}
        id=${(row) => `${row.vendor} ${row.of}`} empty="No vendor can send." />
      ${others.length > 0 && html`<p class="quiet">Without a credential: ${[...new Set(others)].join(", ")}</p>`}`;
  }}</>
    ${asking && !stopped(asking) && html`<${Suspend} of=${asking} whose=${platform ? "any tenant" : "this tenant"} close=${end} again=${list.again} />`}
    ${asking && stopped(asking) && html`<${Resume} of=${asking} close=${end} again=${list.again} />`}
  </section>`;
}
