// SPDX-License-Identifier: Apache-2.0
// What a recipient wants and allows: preferences by category and channel, and consents with their source.

import { ask, at, send } from "../../api.js";
import { html, useRef, useState } from "../../html.js";
import { Confirm, Field } from "../../parts/forms.js";
import { Answer, Trouble } from "../../parts/notices.js";
import { Pill, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { useAct, useAnswer } from "../../use.js";
import { CATEGORIES, CHANNELS } from "../../words.js";

const ROWS = ["any", ...CATEGORIES];
const COLUMNS = ["any", ...CHANNELS];
const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const CHOICES = [
  { value: "", label: "not said" }, { value: "off", label: "off" }, { value: "immediate", label: "at once" }, { value: "hourly", label: "hourly, together" },
  { value: "daily", label: "daily, together" }, { value: "weekly", label: "weekly, together" }];
const WORDS = { off: "off", immediate: "on", hourly: "hourly", daily: "daily", weekly: "weekly" };
const choiceOf = (entry) => (entry === undefined ? "" : entry.off ? "off" : entry.frequency);
const nameOf = (category, channel) => `${category === "any" ? "every category" : category} by ${channel === "any" ? "every channel" : channel}`;

// The whole list is written, as it was a moment ago but for this entry; what changed meanwhile is refused (412).
async function put(path, category, channel, entry) {
  const answer = await ask(path);
  const { preferences } = await answer.json();
  const others = preferences.filter((each) => each.category !== category || each.channel !== channel);
  const body = [...others, ...(entry ? [{ category, channel, ...entry }] : [])].map(({ updated_at: _, ...each }) => each);
  await send("PUT", path, body, { headers: { "If-Match": answer.headers.get("ETag") } });
  return true;
}

function Edit({ path, category, channel, entry, close, again }) {
  const [given, setGiven] = useState({ choice: choiceOf(entry), at: entry?.at ?? "08:00", weekday: String(entry?.weekday ?? 1) });
  const { choice } = given;
  const timed = choice === "daily" || choice === "weekly";
  const wanted = choice === "" ? undefined : choice === "off" ? { off: true }
    : { off: false, frequency: choice, ...(timed && { at: given.at }), ...(choice === "weekly" && { weekday: Number(given.weekday) }) };
  const act = useAct(async () => { await put(path, category, channel, wanted); again(); return true; });
  const set = (change) => setGiven({ ...given, ...change });
  return html`<${Confirm} title=${`Preference: ${nameOf(category, channel)}`} yes="Save" act=${act} close=${close}>
    <div class="filters">
      <${Field} label="The recipient wants it" value=${choice} set=${(value) => set({ choice: value })} choices=${CHOICES} />
      ${timed && html`<${Field} label="At" type="time" value=${given.at} set=${(value) => set({ at: value })} />`}
      ${choice === "weekly" && html`<${Field} label="On" value=${given.weekday} set=${(weekday) => set({ weekday })} choices=${DAYS.map((label, index) => ({ value: String(index + 1), label }))} />`}
    </div></>`;
}

function Cell({ entry, category, channel, edit, first }) {
  const choice = choiceOf(entry);
  const text = html`<span class=${choice === "off" ? "pill warn" : choice ? "pill good" : "quiet"}>${WORDS[choice] ?? "·"}</span>${entry?.at && html` <span class="quiet">${entry.at}</span>`}`;
  if (!edit) return html`<td>${text}</td>`;
  return html`<td><button type="button" class="cell" tabindex=${first ? 0 : -1} aria-label=${`${nameOf(category, channel)}: ${WORDS[choice] ? `${WORDS[choice]} ${entry.at ?? ""}`.trim() : "· not said"}`}
    onClick=${() => edit({ category, channel, entry })}>${text}</button></td>`;
}

// Arrow keys move between the cells; one of them is on the way of Tab.
function Matrix({ entries, edit }) {
  const body = useRef();
  const move = (event) => {
    const cells = [...body.current.querySelectorAll("button")];
    const at = cells.indexOf(event.target);
    const rtl = getComputedStyle(body.current).direction === "rtl" ? -1 : 1;
    const step = { ArrowRight: rtl, ArrowLeft: -rtl, ArrowDown: COLUMNS.length, ArrowUp: -COLUMNS.length }[event.key];
    if (!step || at < 0 || !cells[at + step]) return;
    event.preventDefault();
    cells[at].tabIndex = -1;
    cells[at + step].tabIndex = 0;
    cells[at + step].focus();
  };
  return html`<div class="table" role="region" aria-label="Preferences" tabindex=${edit ? undefined : 0}><table class="matrix">
    <thead><tr><th scope="col">Category</th>${COLUMNS.map((channel) => html`<th key=${channel} scope="col">${channel}</th>`)}</tr></thead>
    <tbody ref=${body} onKeyDown=${move}>${ROWS.map((category, row) => html`<tr key=${category}><th scope="row">${category}</th>${COLUMNS.map((channel, column) => html`
      <${Cell} key=${channel} entry=${entries.find((each) => each.category === category && each.channel === channel)} category=${category} channel=${channel} edit=${edit}
        first=${row === 0 && column === 0} />`)}</tr>`)}</tbody></table></div>`;
}

export function Preferences({ id, can }) {
  const path = at`/v1/recipients/${id}/preferences`;
  const list = useAnswer(path);
  const [editing, setEditing] = useState();
  return html`<div class="panel" data-part="preferences"><h2>Preferences</h2>
    <${Answer} of=${list}>${({ preferences }) => html`<p class="quiet">${preferences.length === 0 ? "The recipient has said nothing." : "What is not said (·) follows “any”."}</p>
      <${Matrix} entries=${preferences} edit=${can("recipients:write") ? setEditing : undefined} />`}</>
    ${editing && html`<${Edit} ...${editing} path=${path} close=${() => setEditing(undefined)} again=${list.again} />`}
  </div>`;
}

// ---- consents ----

const CONSENTS = [
  { name: "Category", show: (row) => row.category },
  { name: "Channel", show: (row) => row.channel },
  { name: "Granted", show: (row) => html`<${Pill} state=${row.granted ? "yes" : "no"} />` },
  { name: "Source", wide: true, show: (row) => row.source ?? "" },
  { name: "Given", show: (row) => html`<${When} at=${row.given_at} />` },
];

function Record({ path, close, again }) {
  const [given, setGiven] = useState({ category: "marketing", channel: "email", granted: "true", source: "" });
  const act = useAct(async () => {
    await send("PUT", path, [{ ...given, source: given.source.trim(), granted: given.granted === "true" }]);
    again();
    return true;
  });
  const set = (change) => setGiven({ ...given, ...change });
  return html`<${Confirm} title="Record a consent" yes="Record it" act=${act} close=${close} disabled=${given.source.trim() === ""}>
    <p class="quiet">As given now. It takes the place of an earlier one for the same category and channel.</p>
    <div class="filters">
      <${Field} label="Category" value=${given.category} set=${(category) => set({ category })} choices=${ROWS} />
      <${Field} label="Channel" value=${given.channel} set=${(channel) => set({ channel })} choices=${COLUMNS} />
      <${Field} label="The recipient" value=${given.granted} set=${(granted) => set({ granted })} choices=${[{ value: "true", label: "agrees" }, { value: "false", label: "refuses" }]} />
      <${Field} label="Source" value=${given.source} set=${(source) => set({ source })} maxlength="200" hint="Where the recipient said so: “phone, ticket 17”" />
    </div></>`;
}

export function Consents({ id, can }) {
  const path = at`/v1/recipients/${id}/consents`;
  const list = useAnswer(path);
  const [recording, setRecording] = useState(false);
  return html`<div class="panel" data-part="consents"><h2>Consents</h2>
    ${list.data ? html`<${Table} label="Consents" columns=${CONSENTS} list=${{ rows: list.data.consents }} id=${(row) => `${row.category} ${row.channel}`}
      empty="None was given, and none refused. Marketing needs one." />` : html`<${Answer} of=${list}>${() => null}</>`}
    <${Trouble} of=${list.data && list.problem} again=${list.again} />
    ${can("recipients:write") && html`<p class="acts"><button type="button" onClick=${() => setRecording(true)}>Record a consent</button></p>`}
    ${recording && html`<${Record} path=${path} close=${() => setRecording(false)} again=${list.again} />`}
  </div>`;
}
