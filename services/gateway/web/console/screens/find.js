// SPDX-License-Identifier: Apache-2.0
// Find: one box for whatever is known of a notification, the list of what fits, and what became of each and why.

import { at, get } from "../api.js";
import { html, useMemo } from "../html.js";
import { Empty, Trouble, Waiting } from "../parts/notices.js";
import { Pill, Reason, shortId, When } from "../parts/show.js";
import { Table } from "../parts/table.js";
import { go, Link, refine } from "../router.js";
import { useAct, usePages } from "../use.js";
import { Filters, isIndexed, questionOf, Search } from "./find/filters.js";
import { KINDS, useKind } from "./find/guess.js";
import { Notification } from "./find/notification.js";

const BEHIND_S = 10;
const day = (at) => new Date(at).toDateString();
const GONE = html`<span class="quiet">not in history</span>`; // not yet, or not any more

const WHEN = { name: "Accepted", show: (row) => html`<${When} at=${row.created_at} short=${day(row.created_at) === day(Date.now())} />` };
const STATUS = { name: "Status", show: (row) => (row.status ? html`<${Pill} state=${row.status} />` : GONE) };
const TEMPLATE = { name: "Template", show: (row) => row.template };
const REASON = { name: "Reason", show: (row) => html`<${Reason} of=${row.reason_code} />` };
// An address that was given alone is in no list of the API.
const RECIPIENT = { name: "Recipient", show: (row) => (row.recipient_id ? html`<span class="mono" title=${row.recipient_id}>${shortId(row.recipient_id)}</span>`
  : row.status && html`<span class="quiet">an address alone</span>`) };
const NARROW = [WHEN, STATUS, TEMPLATE, REASON];
const WHOLE = [
  WHEN, STATUS, REASON, RECIPIENT, TEMPLATE,
  { name: "Channel", show: (row) => row.channel },
  { name: "Category", show: (row) => row.category },
  { name: "Correlation", show: (row) => row.correlation_id ?? "" },
  { name: "Notification", show: (row) => html`<span class="mono">${row.id}</span>` },
];

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

// An order whose notifications have another correlation id than its own.
function Order({ id }) {
  const act = useAct(async () => {
    const order = await get(at`/v1/orders/${id}`);
    go("find", [], { q: order.correlation_id, as: "correlation_id" });
    return order;
  });
  return html`<p><button type="button" disabled=${act.running} onClick=${act.run}>Look for an order with this id</button></p><${Trouble} of=${act.problem} />`;
}

// What was understood, or that nothing was.
function Understood({ route, kind }) {
  const { q, as } = route.query;
  if (!q || kind.waiting || kind.problem) return null;
  if (kind.kind) {
    return html`<p class="quiet">${as || kind.tried.length === 1 ? "Looked for" : "Found"} as ${KINDS[kind.kind]}: <bdi>${q}</bdi>.
      ${" "}<button type="button" class="plain" onClick=${() => refine(route, { ...route.query, q: "", as: "" })}>Clear the search</button></p>`;
  }
  return html`<${Empty}>Nothing has <bdi><strong>${q}</strong></bdi> as its ${kind.tried.map((each) => KINDS[each]).join(", ")}.
    If you know what it is, say so in “Which is”.</>
    ${UUID.test(q) && html`<${Order} key=${q} id=${q} />`}`;
}

function Lag({ of }) {
  if (of === undefined || (of !== null && of < BEHIND_S)) return null;
  return html`<p class="notice warn" role="status">${of === null ? "The search index is being made: what is older may be missing." : `The search index is ${Math.round(of)} seconds behind.`}</p>`;
}

function List({ route, id, kind, list }) {
  const open = (row) => go("find", [row.id], Object.keys(route.query).length > 0 ? route.query : { when: "24h" }); // with a query the list stays
  if (kind.problem) return html`<${Trouble} of=${kind.problem} />`;
  if (kind.waiting) return html`<${Waiting} what="Finding out what this is" />`;
  if (route.query.q && !kind.kind) return null;
  return html`<${Lag} of=${list.about?.lag_seconds} />
    <${Table} label="Notifications" columns=${id ? NARROW : WHOLE} list=${list} id=${(row) => row.id} open=${open} chosen=${(row) => row.id === id}
      what="Searching" empty=${isIndexed(route.query) ? "No notification fits." : "Nothing fits that was accepted in this time. Search for an address or an id to look through all times."} />`;
}

export default function Find({ route, can }) {
  const [id] = route.parts;
  const { query } = route;
  const alone = id && Object.keys(query).length === 0; // by a link: there is no list to go with it
  const kind = useKind(query.q, query.as);
  const ask = !alone && !kind.waiting && !kind.problem && (!query.q || kind.kind);
  const question = useMemo(() => questionOf(query, kind.kind), [JSON.stringify(query), kind.kind]); // with its span of time, which ends when it is asked
  const list = usePages(ask ? "/v1/notifications" : undefined, question);
  return html`<h1>Find</h1>
    <${Search} route=${route} />
    ${!alone && html`<div class=${id ? "wide-only" : ""}><${Filters} route=${route} /><${Understood} route=${route} kind=${kind} /></div>`}
    <div class=${id && !alone ? "split" : ""}>
      ${!alone && html`<div class=${id ? "wide-only" : ""}><${List} route=${route} id=${id} kind=${kind} list=${list} /></div>`}
      ${id && html`<div>
        <p class="quiet"><${Link} to="find" query=${query}>${alone ? "To the search" : "Back to the list"}</></p>
        <${Notification} key=${id} id=${id} can=${can} searched=${kind.kind === "address" ? query.q : undefined} />
      </div>`}
    </div>`;
}
