// SPDX-License-Identifier: Apache-2.0
// What a stage gave up: by reason, one by one, and sent again once it is known how many may go out twice.

import { html, useEffect, useState } from "../html.js";
import { Field } from "../parts/forms.js";
import { Moment } from "../parts/moment.js";
import { Answer, Good, Warning } from "../parts/notices.js";
import { number, Reason, When } from "../parts/show.js";
import { Table } from "../parts/table.js";
import { go, refine } from "../router.js";
import { useAnswer, usePages } from "../use.js";
import { Letter, Resend } from "./dead/letter.js";
import { ResendAll } from "./dead/resend_all.js";

const OF_GROUP = ["stage", "reason", "vendor", "code", "enhanced_code"];
const code = (row) => [row.code, row.enhanced_code].filter(Boolean).join(" ");

const GROUPS = [
  { name: "Letters", end: true, show: (row) => html`<strong>${number(row.letters)}</strong>` },
  { name: "Stage", show: (row) => row.stage },
  { name: "Reason", show: (row) => html`<${Reason} of=${row.reason} />` },
  { name: "Vendor", show: (row) => row.vendor },
  { name: "Code", show: code },
  { name: "Safe", end: true, show: (row) => number(row.safe) },
  { name: "May double", end: true, show: (row) => number(row.may_double) },
  { name: "Refused", end: true, show: (row) => number(row.refused) },
  { name: "Newest", show: (row) => html`<${When} at=${row.newest_at} short />` },
  { name: "First one says", wide: true, show: (row) => row.detail },
];
const LETTERS = [
  { name: "Stored", show: (row) => html`<${When} at=${row.stored_at} short />` },
  { name: "Resend", show: (row) => html`<${Resend} of=${row.resend} />` },
  { name: "Stage", show: (row) => row.stage },
  { name: "Reason", show: (row) => html`<${Reason} of=${row.reason} />` },
  { name: "Code", show: code },
  { name: "Notification", show: (row) => html`<span class="mono">${row.notification_id ?? "–"}</span>` },
  { name: "Says", wide: true, show: (row) => row.detail },
];

// Which letters the filter of the address selects.
const filterOf = (query) => Object.fromEntries([...OF_GROUP, "since"].filter((name) => query[name]).map((name) => [name, query[name]]));

function Groups({ of, filter, choose }) {
  const chosen = (row) => OF_GROUP.some((name) => filter[name]) && OF_GROUP.every((name) => !filter[name] || filter[name] === row[name]);
  return html`<${Answer} of=${of} what="Reading the stream">${({ data, other, complete }) => html`
    <${Table} label="Reasons" columns=${GROUPS} list=${{ rows: data }} id=${(row) => OF_GROUP.map((name) => row[name]).join("\n")} chosen=${chosen} open=${choose}
      empty=${filter.since ? "Since then no stage has given anything up." : "No stage has given anything up."} />
    ${data.length > 0 && html`<p class="quiet">If they were sent again: safe ones cannot have gone out, others may double; a refused one stays, and its letter says why.</p>`}
    ${other > 0 && html`<p class="quiet">${number(other)} more letters are of further groups.</p>`}
    ${!complete && html`<${Warning}>There are more letters than one call reads: the numbers are of the oldest ones.</>`}`}</>`;
}

function Filters({ groups, filter, set }) {
  const names = (name) => ["", ...new Set([...(groups ?? []).map((row) => row[name]), filter[name]].filter(Boolean))].sort();
  const further = ["vendor", "code", "enhanced_code"].filter((name) => filter[name]);
  return html`<div class="filters">
    <${Field} label="Stage" value=${filter.stage} choices=${names("stage")} set=${(stage) => set({ stage })} />
    <${Field} label="Reason" value=${filter.reason} choices=${names("reason")} set=${(reason) => set({ reason })} />
    <${Moment} label="Since" value=${filter.since} set=${(since) => set({ since })} />
    ${further.length > 0 && html`<div class="quiet" dir="auto">Last attempt: ${further.map((name) => filter[name]).join(" ")}</div>`}
    ${Object.keys(filter).length > 0 && html`<div><button type="button" onClick=${() => set(Object.fromEntries([...OF_GROUP, "since"].map((name) => [name])))}>All letters</button></div>`}
  </div>`;
}

// Ingest sends what was asked for, and the letters go one after the other: a function after which the screen looks twice.
function useLook(...looks) {
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    if (asked === 0) return undefined;
    const timers = [1_000, 6_000].map((wait) => setTimeout(() => looks.forEach((look) => look()), wait));
    return () => timers.forEach(clearTimeout);
  }, [asked]);
  return () => setAsked((count) => count + 1);
}

export default function Dead({ route, can }) {
  const filter = filterOf(route.query);
  const groups = useAnswer("/v1/dead-letters/reasons", { since: filter.since });
  const list = usePages("/v1/dead-letters", filter);
  const [bulk, setBulk] = useState(false);
  const [said, setSaid] = useState();
  const look = useLook(groups.again, list.again);
  const set = (change) => refine(route, { ...route.query, ...change });
  const choose = (row) => set(Object.fromEntries(OF_GROUP.map((name) => [name, row[name]])));
  const did = (words) => { setSaid(words); look(); };
  const open = route.parts[0];
  return html`<h1>Dead letters</h1>
    <${Filters} groups=${groups.data?.data} filter=${filter} set=${set} />
    <section aria-labelledby="reasons"><h2 id="reasons">Why</h2><${Groups} of=${groups} filter=${filter} choose=${choose} /></section>
    <section aria-labelledby="letters"><h2 id="letters">Letters, the oldest first</h2>
      ${said && html`<${Good}>${said}</>`}
      ${can("dead:resend") && list.rows.length > 0 && html`<p class="acts"><button type="button" onClick=${() => setBulk(true)}>Send these again …</button>
        <span class="quiet">It is counted first which of them may go out twice.</span></p>`}
      <div class=${open ? "split" : ""}>
        <div><${Table} label="Dead letters" columns=${open ? LETTERS.filter(({ name }) => name !== "Code" && name !== "Stage") : LETTERS} list=${list} id=${(row) => row.sequence}
          chosen=${(row) => String(row.sequence) === open} open=${(row) => go("dead", [String(row.sequence)], route.query)} what="Reading the stream"
          empty=${Object.keys(filter).length > 0 ? "No letter is like this." : "There is no dead letter."} /></div>
        ${open && html`<${Letter} key=${open} sequence=${open} can=${can} did=${did} close=${() => go("dead", [], route.query)} />`}
      </div>
    </section>
    ${bulk && html`<${ResendAll} filter=${filter} close=${() => setBulk(false)} did=${look} />`}`;
}
