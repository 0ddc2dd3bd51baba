// SPDX-License-Identifier: Apache-2.0
// The tenant's own suppression list: who gets nothing, why, since when and by whom; one added, one released.

import { send } from "../api.js";
import { html, useState } from "../html.js";
import { Confirm, Field } from "../parts/forms.js";
import { Moment } from "../parts/moment.js";
import { Good } from "../parts/notices.js";
import { Facts, Pill, Reason, When } from "../parts/show.js";
import { Table } from "../parts/table.js";
import { Who } from "../parts/who.js";
import { go, Link, refine } from "../router.js";
import { useAct, useAnswer, usePages } from "../use.js";
import { CATEGORIES, CHANNELS, SUPPRESSION_REASONS, wordsOf } from "../words.js";
import { mayRelease, Release } from "./recipients/suppressions.js";

const FILTERS = ["address", "channel", "reason", "state"];
const stateOf = (row) => (row.released_at ? "released" : row.expires_at && Date.parse(row.expires_at) < Date.now() ? "expired" : "in force");
const named = (code) => ({ value: code, label: `${wordsOf(code)} (${code})` });

const COLUMNS = [
  { name: "Address", show: (row) => row.address ?? "–" },
  { name: "Channel", show: (row) => row.channel },
  { name: "Category", show: (row) => row.category ?? "every one" },
  { name: "Reason", show: (row) => html`<${Reason} of=${row.reason} />` },
  { name: "State", show: (row) => html`<${Pill} state=${stateOf(row) === "in force" ? "suppressed" : stateOf(row)} label=${stateOf(row)} />` },
  { name: "Since", show: (row) => html`<${When} at=${row.created_at} short />` },
  { name: "By", show: (row) => html`<${Who} of=${row.created_by} />` },
  { name: "Note", wide: true, show: (row) => row.note ?? "" },
];
const NARROW = COLUMNS.filter(({ name }) => ["Address", "Reason", "State"].includes(name));

function Filters({ route }) {
  const { query } = route;
  const [address, setAddress] = useState(query.address ?? "");
  const set = (change) => refine(route, { ...query, ...change });
  return html`<form class="filters" onSubmit=${(event) => { event.preventDefault(); set({ address: address.trim() }); }}>
    <${Field} label="Address, as a whole" value=${address} set=${setAddress} onChange=${() => set({ address: address.trim() })} type="search" maxlength="320" />
    <${Field} label="Channel" value=${query.channel} set=${(channel) => set({ channel })} choices=${["", ...CHANNELS]} />
    <${Field} label="Reason" value=${query.reason} set=${(reason) => set({ reason })} choices=${[{ value: "", label: "any" }, ...SUPPRESSION_REASONS.map(named)]} />
    <${Field} label="State" value=${query.state} set=${(state) => set({ state })} choices=${[{ value: "", label: "in force" }, { value: "all", label: "released and expired, too" }]} />
  </form>`;
}

function Add({ close, did }) {
  const [given, setGiven] = useState({ address: "", channel: "email", category: "any", reason: "manual", note: "" });
  const set = (change) => setGiven({ ...given, ...change });
  const act = useAct(async () => {
    const body = Object.fromEntries(Object.entries({ ...given, address: given.address.trim(), note: given.note.trim() }).filter(([, value]) => value));
    const made = await send("POST", "/v1/suppressions", body);
    did(made);
    return made;
  });
  const wrong = (field) => act.problem?.fields.find((each) => each.field === field)?.detail;
  return html`<${Confirm} title="Suppress an address" yes="Suppress it" act=${act} close=${close} disabled=${given.address.trim() === ""}>
    <p>From now on nothing of this goes to it, whatever asks for it, until it is released.</p>
    <div class="filters">
      <${Field} label="Address" value=${given.address} set=${(address) => set({ address })} maxlength="320" required wrong=${wrong("address")} />
      <${Field} label="Channel" value=${given.channel} set=${(channel) => set({ channel })} choices=${CHANNELS} />
      <${Field} label="Category" value=${given.category} set=${(category) => set({ category })} choices=${[{ value: "any", label: "every one" }, ...CATEGORIES.map((value) => ({ value, label: value }))]} />
      <${Field} label="Reason" value=${given.reason} set=${(reason) => set({ reason })} choices=${SUPPRESSION_REASONS.map(named)} wrong=${wrong("reason")} />
      <${Moment} label="Until (else for good)" value=${given.expires_at} set=${(expires_at) => set({ expires_at })} wrong=${wrong("expires_at")} />
      <${Field} label="Note" value=${given.note} set=${(note) => set({ note })} maxlength="200" hint="Why: “asked by phone, ticket 17”" wrong=${wrong("note")} />
    </div></>`;
}

function Entry({ id, can, close, did }) {
  const answer = useAnswer(`/v1/suppressions/${encodeURIComponent(id)}`);
  const [releasing, setReleasing] = useState(false);
  const of = answer.data;
  return html`<section class="panel" aria-label="Suppression"><h2 dir="auto">${of?.address ?? "Suppression"}</h2>
    ${answer.problem && html`<p class="notice bad" role="alert">${answer.problem.message}</p>`}
    ${of && html`<p><${Pill} state=${stateOf(of) === "in force" ? "suppressed" : stateOf(of)} label=${stateOf(of)} /> <${Reason} of=${of.reason} /></p>
      <${Facts} of=${{
        Channel: of.channel, Category: of.category ?? "every one", Since: of.created_at && html`<${When} at=${of.created_at} />`, By: of.created_by && html`<${Who} of=${of.created_by} />`,
        Until: of.expires_at ? html`<${When} at=${of.expires_at} />` : "it is released", Note: of.note,
        Released: of.released_at && html`<${When} at=${of.released_at} />`, "Released by": of.released_by && html`<${Who} of=${of.released_by} />`,
        "Because of": of.source_notification_id && can("notifications:read") && html`<${Link} to="find" parts=${[of.source_notification_id]} class="mono">${of.source_notification_id}</>`,
        Entry: html`<code>${of.id}</code>` }} />
      ${stateOf(of) === "in force" && mayRelease(can, of) && html`<p class="acts"><button type="button" onClick=${() => setReleasing(true)}>Release it …</button></p>`}`}
    <p class="acts"><button type="button" onClick=${close}>Close</button></p>
    ${releasing && html`<${Release} of=${of} close=${() => setReleasing(false)} again=${() => { answer.again(); did(`Released: ${of.address} (${of.channel}).`); }} />`}
  </section>`;
}

export default function Suppressions({ route, can }) {
  const query = Object.fromEntries(FILTERS.filter((name) => route.query[name]).map((name) => [name, route.query[name]]));
  const list = usePages("/v1/suppressions", query);
  const [adding, setAdding] = useState(false);
  const [said, setSaid] = useState();
  const open = route.parts[0];
  const did = (words) => { setSaid(words); list.again(); };
  return html`<h1>Suppressions</h1>
    <${Filters} route=${route} />
    ${can("suppressions:write") && html`<p class="acts"><button type="button" onClick=${() => setAdding(true)}>Suppress an address …</button></p>`}
    ${said && html`<${Good}><bdi>${said}</bdi></>`}
    <div class=${open ? "split" : ""}>
      <div><${Table} label="Suppressions" columns=${open ? NARROW : COLUMNS} list=${list} id=${(row) => row.id} chosen=${(row) => row.id === open}
        open=${(row) => go("suppressions", [row.id], query)} empty=${Object.keys(query).length > 0 ? "None is like this." : "No address is on the tenant’s own list."} /></div>
      ${open && html`<${Entry} key=${open} id=${open} can=${can} did=${did} close=${() => go("suppressions", [], query)} />`}
    </div>
    ${adding && html`<${Add} close=${() => setAdding(false)} did=${(made) => did(`Suppressed: ${made.address} (${made.channel}).`)} />`}`;
}
