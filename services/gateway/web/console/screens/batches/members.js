// SPDX-License-Identifier: Apache-2.0
// Members of a draft, from a file of NDJSON: its good lines are taken, and each other one is named.

import { at, send } from "../../api.js";
import { html, useRef, useState } from "../../html.js";
import { Field } from "../../parts/forms.js";
import { Good, Trouble, Warning } from "../../parts/notices.js";
import { number } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { useAct } from "../../use.js";

const PART_LINES = 10_000;
const PART_CHARACTERS = 1_000_000; // 4 MiB at most, whatever the script
const SHOWN = 10_000;

// {text, first, count}: parts of the file as it is read, with the number of their first line.
async function* partsOf(file) {
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader();
  let part = { lines: [], size: 0, first: 1 };
  const made = () => ({ text: `${part.lines.join("\n")}\n`, first: part.first, count: part.lines.length });
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : lines.pop();
    if (done && lines.at(-1) === "") lines.pop();
    for (const line of lines) {
      if (part.lines.length > 0 && (part.lines.length === PART_LINES || part.size + line.length > PART_CHARACTERS)) {
        yield made();
        part = { lines: [], size: 0, first: part.first + part.lines.length };
      }
      part.lines.push(line);
      part.size += line.length + 1;
    }
    if (done) break;
  }
  if (part.lines.length > 0) yield made();
}

const BROKEN = [
  { name: "Line", end: true, show: (row) => number(row.line) },
  { name: "Field", show: (row) => html`<code>${row.field ?? ""}</code>` },
  { name: "What is wrong", wide: true, show: (row) => row.detail },
];

export function Members({ of, did }) {
  const file = useRef();
  const [chosen, setChosen] = useState(false);
  const [first, setFirst] = useState("1");
  const [state, setState] = useState({ parts: 0, added: 0, broken: 0, repeated: 0, lines: [] });
  const act = useAct(async () => {
    const sum = { parts: 0, added: 0, broken: 0, repeated: 0, lines: [] };
    for await (const { text, first: line } of partsOf(file.current.files[0])) {
      const taken = await send("PUT", `${at`/v1/batches/${of.id}`}/members`, text, { query: { part: Number(first) + sum.parts }, headers: { "Content-Type": "application/x-ndjson" } });
      sum.parts++;
      sum.added += taken.repeated ? 0 : taken.added;
      sum.repeated += taken.repeated ? 1 : 0;
      sum.broken += taken.broken;
      sum.lines = sum.lines.concat(taken.lines.map((each) => ({ ...each, line: each.line + line - 1 }))).slice(0, SHOWN);
      setState({ ...sum });
    }
    did();
    return sum;
  });
  const wrong = /^[1-9]\d{0,6}$/.test(first) ? undefined : "A whole number from 1 to 1,000,000.";
  return html`<section class="panel" aria-labelledby="members"><h2 id="members">Members</h2>
    <p class="quiet">A line a member, such as <code dir="ltr">{"to": "bob@example.com", "variables": {"name": "Bob"}}</code>. The file goes in parts of up to ${number(PART_LINES)} lines;
      a part that comes again with the same bytes changes nothing.</p>
    <div class="filters">
      <div class="field"><label for="members-file">File (NDJSON)</label><input id="members-file" type="file" accept=".ndjson,.jsonl,.json,.txt" ref=${file} onChange=${() => setChosen(file.current.files.length > 0)} /></div>
      <${Field} label="Number of its first part" value=${first} set=${setFirst} inputmode="numeric" wrong=${wrong} />
      <div><button type="button" class="main" disabled=${!chosen || wrong || act.running} onClick=${() => act.run()}>${act.running ? `Part ${number(state.parts + 1)} …` : "Upload"}</button></div>
    </div>
    <${Trouble} of=${act.problem} />
    ${act.problem && state.parts > 0 && html`<p>${number(state.parts)} parts before it were taken.</p>`}
    ${act.done && html`<${Good}>${number(state.added)} added in ${number(state.parts)} ${state.parts === 1 ? "part" : "parts"}${state.repeated > 0 ? `; ${number(state.repeated)} were there already` : ""}.</>`}
    ${state.broken > 0 && html`<${Warning}>${number(state.broken)} broken ${state.broken === 1 ? "line was" : "lines were"} not taken${state.broken > state.lines.length ? `; the first ${number(state.lines.length)} of them:` : ":"}</>
      <${Table} label="Broken lines" columns=${BROKEN} list=${{ rows: state.lines }} id=${(row) => `${row.line} ${row.field}`} />`}
  </section>`;
}
