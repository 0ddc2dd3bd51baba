// SPDX-License-Identifier: Apache-2.0
// What is sent: the keys, and of one key its versions (templates/version.js), or a new one.

import { html, useState } from "../html.js";
import { Field } from "../parts/forms.js";
import { Pill, When } from "../parts/show.js";
import { Table } from "../parts/table.js";
import { Who } from "../parts/who.js";
import { go, Link, refine } from "../router.js";
import { usePages } from "../use.js";
import { CHANNELS } from "../words.js";
import { New } from "./templates/edit.js";
import { Version } from "./templates/version.js";

const COLUMNS = [
  { name: "Key", show: (row) => html`<strong>${row.key}</strong>` },
  { name: "Channel", show: (row) => row.channel },
  { name: "In force", show: (row) => html`${row.version} <${Pill} state=${row.status} />` },
  { name: "Category", show: (row) => row.category },
  { name: "Locales", end: true, show: (row) => row.locales },
  { name: "Published", show: (row) => html`<${When} at=${row.published_at} short />` },
  { name: "By", show: (row) => html`<${Who} of=${row.published_by} />` },
];

function List({ route, can }) {
  const { channel = "", platform = "" } = route.query;
  const [part, setPart] = useState("");
  const list = usePages("/v1/templates", { channel, platform });
  const rows = part ? list.rows.filter((row) => row.key.includes(part)) : list.rows;
  const set = (change) => refine(route, { ...route.query, ...change });
  return html`<h1>Templates</h1>
    <div class="filters">
      <${Field} label="Key has" value=${part} set=${setPart} hint=${part && list.next ? "of those that are loaded" : undefined} />
      <${Field} label="Channel" value=${channel} set=${(value) => set({ channel: value })} choices=${["", ...CHANNELS]} />
      <${Field} label="Whose" value=${platform} set=${(value) => set({ platform: value })} choices=${[{ value: "", label: "the tenant's" }, { value: "true", label: "the platform's" }]} />
      ${can("templates:write") && html`<div><${Link} class="button main" to="templates" query=${{ new: "true" }}>New template</></div>`}
    </div>
    <${Table} label="Templates" columns=${COLUMNS} list=${{ ...list, rows }} id=${(row) => `${row.key} ${row.channel}`}
      open=${(row) => go("templates", [row.key], { channel: row.channel, platform })} empty="There is no template here yet." />`;
}

export default function Templates({ route, can }) {
  if (route.parts[0]) return html`<${Version} key=${route.parts[0]} route=${route} can=${can} />`;
  if (route.query.new) return html`<${New} can=${can} />`;
  return html`<${List} route=${route} can=${can} />`;
}
