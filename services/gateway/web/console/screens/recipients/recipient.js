// SPDX-License-Identifier: Apache-2.0
// One recipient: who it is, and what decides whether a notification reaches them.

import { ask, at, get, send } from "../../api.js";
import { html, useState } from "../../html.js";
import { Confirm } from "../../parts/forms.js";
import { Answer, Empty, Good, Warning } from "../../parts/notices.js";
import { Facts, Pill, Reason, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { go, Link } from "../../router.js";
import { useAct, useAnswer, usePages } from "../../use.js";
import { Consents, Preferences } from "./choices.js";
import { Reach } from "./reach.js";
import { Suppressions } from "./suppressions.js";

const yes = (value) => (value ? "yes" : "");
const ADDRESSES = [
  { name: "Channel", show: (row) => row.channel },
  { name: "Address", wide: true, show: (row) => row.address ?? "(erased)" },
  { name: "Status", show: (row) => html`<${Pill} state=${row.status} />` },
  { name: "Primary", show: (row) => yes(row.primary) },
  { name: "Verified", show: (row) => yes(row.verified) },
  { name: "Label", show: (row) => row.label ?? "" },
];
const NOTIFICATIONS = [
  { name: "Accepted", show: (row) => html`<${When} at=${row.created_at} />` },
  { name: "Status", show: (row) => row.status && html`<${Pill} state=${row.status} />` },
  { name: "Reason", show: (row) => html`<${Reason} of=${row.reason_code} />` },
  { name: "Template", show: (row) => row.template ?? "" },
  { name: "Channel", show: (row) => row.channel ?? "" },
  { name: "Notification", show: (row) => html`<span class="mono">${row.id}</span>` },
];

function About({ of }) {
  return html`<${Facts} of=${{
    "Name": of.name === null ? "(erased)" : of.name, "Own id": of.identity_id && `${of.identity_type} ${of.identity_id}`, "Language": of.locale, "Time zone": of.time_zone,
    "Quiet hours": of.quiet_hours && `${of.quiet_hours.start} to ${of.quiet_hours.end}`, "Labels": of.labels?.join(", "), "Minor": yes(of.minor),
    "Guardian": of.guardian_id && html`<${Link} to="recipients" parts=${[of.guardian_id]} class="mono">${of.guardian_id}</>`,
    "To the guardian": of.guardian_id && of.guardian_routing, "Changed": of.updated_at && html`<${When} at=${of.updated_at} />` }} />`;
}

function Reveal({ id, close, show }) {
  const act = useAct(async () => {
    const shown = await get(at`/v1/recipients/${id}`, { reveal: true });
    show(shown);
    return shown;
  });
  return html`<${Confirm} title="Show name and addresses?" yes="Record it and show" act=${act} close=${close}>
    <p>This is recorded: your name, the time and this recipient stand in the audit log before anything is shown.</p></>`;
}

// A write on what was just seen: a change by another since then refuses it (412).
async function write(method, path, body, from) {
  const seen = await ask(from);
  await send(method, path, body, { headers: { "If-Match": seen.headers.get("ETag") } });
  return true;
}

function Unsubscribe({ of, close, again }) {
  const off = of.unsubscribed_at === undefined;
  const one = at`/v1/recipients/${of.id}`;
  const act = useAct(async () => { await write("PUT", `${one}/unsubscription`, { unsubscribed: off }, one); again(); return true; });
  return html`<${Confirm} title=${off ? "Unsubscribe this recipient from everything?" : "Subscribe this recipient again?"} yes=${off ? "Unsubscribe" : "Subscribe again"} act=${act} close=${close}>
    <p>${off ? "Nothing but critical and security notifications goes out any more." : "What the preferences and consents below allow goes out again. Do so only when the recipient asks for it."}</p></>`;
}

function Delete({ of, close, gone }) {
  const one = at`/v1/recipients/${of.id}`;
  const act = useAct(async () => { await write("DELETE", one, undefined, one); gone(); return true; });
  return html`<${Confirm} title="Delete this recipient?" yes="Delete this one recipient" act=${act} close=${close}>
    <${Warning}>The record goes with its ${of.addresses.length} ${of.addresses.length === 1 ? "address" : "addresses"}, its preferences and its consents. This cannot be taken back.</>
    <p>It is no erasure: what was sent stays, and the recipient's key too. An operator erases by <code>stentor erase</code>.</p></>`;
}

function Acts({ of, can, revealed, show, again, gone }) {
  const [open, setOpen] = useState();
  const close = () => setOpen(undefined);
  const acts = [
    can("recipients:reveal") && !revealed && ["reveal", "Show name and addresses"],
    can("recipients:write") && ["unsubscribe", of.unsubscribed_at === undefined ? "Unsubscribe from everything" : "Subscribe again"],
    can("recipients:write") && ["delete", "Delete"],
  ].filter(Boolean);
  return html`${acts.length > 0 && html`<p class="acts">${acts.map(([id, label]) => html`<button key=${id} type="button" class=${id === "delete" ? "danger" : ""}
      onClick=${() => setOpen(id)}>${label}</button>`)}</p>`}
    ${open === "reveal" && html`<${Reveal} id=${of.id} close=${close} show=${show} />`}
    ${open === "unsubscribe" && html`<${Unsubscribe} of=${of} close=${close} again=${again} />`}
    ${open === "delete" && html`<${Delete} of=${of} close=${close} gone=${gone} />`}`;
}

function Notifications({ id }) {
  const list = usePages(at`/v1/recipients/${id}/notifications`, undefined, { limit: 20 });
  return html`<div class="panel" data-part="notifications"><h2>Notifications</h2>
    <${Table} label="Notifications" columns=${NOTIFICATIONS} list=${list} id=${(row) => row.id} open=${(row) => go("find", [row.id])} what="Searching" empty="Nothing went to this recipient." />
    <p class="quiet"><${Link} to="find" query=${{ q: id }}>Search among them</></p></div>`;
}

export function Recipient({ id, can }) {
  const one = useAnswer(at`/v1/recipients/${id}`);
  const [revealed, setRevealed] = useState();
  const [gone, setGone] = useState(false);
  if (gone) return html`<${Good}>The recipient is deleted.</>`;
  return html`<${Answer} of=${one} what="Reading the record">${(masked) => {
    const of = revealed ?? masked;
    const again = () => { setRevealed(undefined); one.again(); };
    return html`<article class="recipient" aria-labelledby="recipient">
      <div class="panel"><h2 id="recipient">Recipient <span class="mono">${id}</span></h2>
        ${of.unsubscribed_at && html`<${Warning}>Unsubscribed from everything but critical and security notifications since <${When} at=${of.unsubscribed_at} />.</>`}
        <${Acts} of=${of} can=${can} revealed=${revealed} show=${setRevealed} again=${again} gone=${() => setGone(true)} />
        <${About} of=${of} />
        <h3>Addresses</h3>
        ${of.addresses.length === 0 ? html`<${Empty}>There is none: nothing can be sent.</>`
          : html`<${Table} label="Addresses" columns=${ADDRESSES} list=${{ rows: of.addresses }} id=${(row) => `${row.channel} ${row.address_hash}`} />`}
      </div>
      <div class="columns">
        ${can("suppressions:read") && html`<${Suppressions} addresses=${masked.addresses} can=${can} />`}
        <${Reach} id=${id} />
      </div>
      <${Preferences} id=${id} can=${can} />
      <${Consents} id=${id} can=${can} />
      ${can("notifications:read") && html`<${Notifications} id=${id} />`}
    </article>`;
  }}</>`;
}
