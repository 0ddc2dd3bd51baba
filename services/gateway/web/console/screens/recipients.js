// SPDX-License-Identifier: Apache-2.0
// Recipients: found by an address or the application's own id, masked; one of them with all that decides what reaches them.

import { html, useEffect, useState } from "../html.js";
import { Field } from "../parts/forms.js";
import { Empty, Trouble, Waiting } from "../parts/notices.js";
import { When } from "../parts/show.js";
import { Table } from "../parts/table.js";
import { go, Link, refine } from "../router.js";
import { useFirst, usePages } from "../use.js";
import { idOf } from "./find/guess.js";
import { Recipient } from "./recipients/recipient.js";

const KINDS = { address: "address", user: "own id of a user", guest: "own id of a guest", vendor: "own id of a vendor", anonymous: "own id of an anonymous one" };
const isAddress = (text) => /^[^\s@]+@[^\s@]+$/.test(text) || /^\+[\d ().-]{6,}$/.test(text) || /^https?:\/\//.test(text);
const queryOf = (kind, text) => (kind === "address" ? { address: text } : { identity_type: kind, identity_id: text });

const COLUMNS = [
  { name: "Name", show: (row) => row.name ?? "" },
  { name: "Addresses", wide: true, show: (row) => row.addresses.map(({ channel, address }) => `${channel} ${address ?? "(erased)"}`).join(", ") },
  { name: "Own id", show: (row) => (row.identity_id ? `${row.identity_type} ${row.identity_id}` : "") },
  { name: "Labels", show: (row) => row.labels?.join(", ") },
  { name: "Changed", show: (row) => html`<${When} at=${row.updated_at} />` },
  { name: "Recipient", show: (row) => html`<span class="mono">${row.id}</span>` },
];

function Search({ route }) {
  const { q = "", as = "" } = route.query;
  const [text, setText] = useState(q);
  useEffect(() => setText(q), [q]);
  const submit = (event) => {
    event.preventDefault();
    const typed = text.trim();
    const id = idOf(typed, "rcp_");
    if (id) go("recipients", [id]);
    else go("recipients", [], { q: typed, as });
  };
  return html`<form class="search" role="search" onSubmit=${submit}>
    <${Field} label="Address, id of a recipient, or your application's own id" value=${text} set=${setText} type="search" maxlength="4096" spellcheck=${false} />
    <${Field} label="Which is" value=${as} set=${(value) => refine({ ...route, parts: [] }, { q: text.trim(), as: value })}
      choices=${[{ value: "", label: "by its form" }, ...Object.entries(KINDS).map(([value, label]) => ({ value, label }))]} />
    <button type="submit" class="main">Find</button>
  </form>`;
}

function Found({ q, as }) {
  const tried = as ? [as] : isAddress(q) ? ["address"] : ["user", "guest", "vendor", "anonymous"];
  const first = useFirst("/v1/recipients", tried.map((kind) => ({ kind, query: queryOf(kind, q) })));
  const list = usePages(first.kind && "/v1/recipients", first.kind && queryOf(first.kind, q));
  if (first.problem) return html`<${Trouble} of=${first.problem} />`;
  if (first.waiting) return html`<${Waiting} what="Searching" />`;
  if (!first.kind) return html`<${Empty}>No recipient has <bdi><strong>${q}</strong></bdi> as its own id, whether of a user, a guest, a vendor or an anonymous one.</>`;
  return html`<p class="quiet">Looked for as ${KINDS[first.kind]}: <bdi>${q}</bdi>. Names and addresses are masked.</p>
    <${Table} label="Recipients" columns=${COLUMNS} list=${list} id=${(row) => row.id} open=${(row) => go("recipients", [row.id])} what="Searching"
      empty="No recipient has it." />`;
}

export default function Recipients({ route, can }) {
  const [id] = route.parts;
  const { q, as } = route.query;
  return html`<h1>Recipients</h1>
    <${Search} route=${route} />
    ${id && html`<${Recipient} key=${id} id=${id} can=${can} />`}
    ${!id && q && html`<${Found} q=${q} as=${as} />`}
    ${!id && !q && html`<${Empty}>Recipients are found one by one: by an address that you know, or by the id that your application gave them.
      What went to an address is in <${Link} to="find">Find</>, too.</>`}`;
}
