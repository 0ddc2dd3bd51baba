// SPDX-License-Identifier: Apache-2.0
// One dead letter: what the stage said, its attempts, what became of its notification, and the two acts.

import { at, send } from "../../api.js";
import { html, useEffect, useRef, useState } from "../../html.js";
import { Confirm } from "../../parts/forms.js";
import { Answer, Good, Trouble, Warning } from "../../parts/notices.js";
import { bytes, Facts, number, Pill, Reason, When } from "../../parts/show.js";
import { Table } from "../../parts/table.js";
import { Link } from "../../router.js";
import { useAct, useAnswer } from "../../use.js";

const WORDS = { safe: "safe", may_double: "may double", refused: "refused" };
export const Resend = ({ of }) => html`<${Pill} state=${of} label=${WORDS[of]} />`;

const ATTEMPTS = [
  { name: "#", end: true, show: (row) => row.number },
  { name: "Outcome", show: (row) => html`<${Pill} state=${row.outcome} />` },
  { name: "Vendor", show: (row) => row.vendor },
  { name: "Code", show: (row) => [row.code, row.enhanced_code].filter(Boolean).join(" ") },
  { name: "When", show: (row) => html`<${When} at=${row.finished_at ?? row.started_at} short />` },
  { name: "The vendor's words", wide: true, show: (row) => row.text },
];
const STEPS = [
  { name: "When", show: (row) => html`<${When} at=${row.at} short />` },
  { name: "Status", show: (row) => html`<${Pill} state=${row.status} />` },
  { name: "Attempt", end: true, show: (row) => row.attempt },
  { name: "Reason", wide: true, show: (row) => html`<${Reason} of=${row.reason_code} /> ${row.reason}` },
];

function Check({ label, checked, set }) {
  return html`<p><label><input type="checkbox" checked=${checked} onChange=${(event) => set(event.target.checked)} /> ${label}</label></p>`;
}

export const Flags = ({ of, set, doubles = true, expires = true }) => html`
  ${doubles && html`<${Check} label="Also what may have gone out: its recipient may get it twice" checked=${of.may_double} set=${(may_double) => set({ ...of, may_double })} />`}
  ${expires && html`<${Check} label="Also what has expired: it loses its expiry" checked=${of.ignore_expiry} set=${(ignore_expiry) => set({ ...of, ignore_expiry })} />`}`;

function SendAgain({ letter, close, did }) {
  const [flags, setFlags] = useState({ may_double: false, ignore_expiry: false });
  const act = useAct(async () => {
    await send("POST", at`/v1/dead-letters/${letter.sequence}/resend`, flags);
    did();
    return true;
  });
  const stays = letter.resend === "may_double" && !flags.may_double;
  return html`<${Confirm} title=${`Send dead letter ${letter.sequence} again?`} yes="Send it again" act=${act} close=${close} disabled=${stays}>
    <p>${letter.notification_id ? "The stage handles its event once more, past the limits of attempts." : "Its event is handled once more."} What is sent cannot be taken back.</p>
    ${letter.resend !== "safe" && html`<${Warning}><${Resend} of=${letter.resend} /> <span dir="auto">${letter.resend_why}</span></>
      <${Flags} of=${flags} set=${setFlags} />`}
  </>`;
}

function Drop({ letter, close, did }) {
  const act = useAct(async () => {
    await send("DELETE", at`/v1/dead-letters/${letter.sequence}`);
    did();
    return true;
  });
  return html`<${Confirm} title=${`Drop dead letter ${letter.sequence} for good?`} yes="Drop it" act=${act} close=${close}>
    <p>The letter is deleted and can never be sent again.${letter.notification_id ? " Its notification ends as failed, with the reason dropped." : ""}</p>
  </>`;
}

function Story({ id }) {
  const timeline = useAnswer(at`/v1/notifications/${id}/timeline`);
  return html`<h3>Its notification</h3><${Answer} of=${timeline} what="Asking history">${({ status, timeline: rows }) => html`
    <p><${Pill} state=${status} /> <${Link} class="mono" to="find" parts=${[id]}>${id}</></p>
    <${Table} label="Timeline" columns=${STEPS} list=${{ rows }} id=${(row) => `${row.at} ${row.status} ${row.attempt}`} empty="History has no step of it." />`}</>`;
}

function About({ letter, can, ask }) {
  const { notification_id: id, attempts } = letter;
  return html`<p><${Resend} of=${letter.resend} /> <strong dir="auto">${letter.detail}</strong></p>
    ${letter.resend_why && html`<p class="quiet" dir="auto">${letter.resend_why}</p>`}
    ${can("dead:resend") && html`<p class="acts"><button type="button" class="main" onClick=${() => ask("send")}>Send again …</button>
      <button type="button" class="danger" onClick=${() => ask("drop")}>Drop …</button></p>`}
    <${Facts} of=${{
      Stage: letter.stage, Reason: html`<${Reason} of=${letter.reason} />`, Stored: html`<${When} at=${letter.stored_at} />`,
      Notification: id && html`<${Link} class="mono" to="find" parts=${[id]}>${id}</>`,
      Event: letter.event_id && html`<span class="mono">${letter.event_id}</span>`, Subject: letter.subject && html`<span class="mono">${letter.subject}</span>`,
      "Came from": letter.stream && `${letter.stream}, ${number(letter.stream_sequence)}`, Deliveries: letter.deliveries !== undefined && number(letter.deliveries),
      "Its event has": letter.event_bytes !== undefined && bytes(letter.event_bytes) }} />
    ${attempts.length > 0 && html`<h3>Attempts</h3><${Table} label="Attempts" columns=${ATTEMPTS} list=${{ rows: attempts }} id=${(row) => row.number} />`}
    ${id && can("notifications:read") && html`<${Story} id=${id} />`}`;
}

// sequence: of the address. `did` is called with what to say.
export function Letter({ sequence, can, did, close }) {
  const [asked, setAsked] = useState(false); // to be sent again; it goes when ingest has done so
  const [asking, ask] = useState();
  const answer = useAnswer(at`/v1/dead-letters/${sequence}`, undefined, { every: asked ? 1_000 : undefined });
  const box = useRef();
  const gone = asked && answer.problem?.status === 404;
  useEffect(() => { box.current.scrollIntoView({ block: "nearest" }); }, []);
  useEffect(() => { if (gone) setAsked("gone"); }, [gone]);
  const end = () => ask(undefined);
  const letter = answer.data;
  if (asked === "gone") {
    return html`<section class="panel" ref=${box} aria-label="Dead letter"><h2>Dead letter ${sequence}</h2>
      <${Good}>It was sent again, and is no dead letter any more.</>
      ${letter.notification_id && can("notifications:read") && html`<${Story} id=${letter.notification_id} />`}
      <p class="acts"><button type="button" onClick=${close}>Close</button></p></section>`;
  }
  return html`<section class="panel" ref=${box} aria-label="Dead letter"><h2>Dead letter ${sequence}</h2>
    ${answer.problem?.status === 404 ? html`<p>There is none of this number: it was sent again or dropped, or is another tenant's.</p>`
      : html`<${Trouble} of=${answer.problem} again=${answer.again} />`}
    ${asked && html`<p class="wait" role="status">Asked for: ingest sends it again, and then the letter goes.</p>`}
    ${letter && !answer.problem && html`<${About} letter=${letter} can=${(scope) => can(scope) && !(asked && scope === "dead:resend")} ask=${ask} />`}
    ${!letter && !answer.problem && html`<p class="wait" role="status">Loading …</p>`}
    <p class="acts"><button type="button" onClick=${close}>Close</button></p>
    ${asking === "send" && html`<${SendAgain} letter=${letter} close=${end} did=${() => { setAsked(true); did(`Dead letter ${sequence} is being sent again.`); }} />`}
    ${asking === "drop" && html`<${Drop} letter=${letter} close=${end} did=${() => { did(`Dead letter ${sequence} was dropped.`); close(); }} />`}
  </section>`;
}
