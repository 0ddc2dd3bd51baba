// SPDX-License-Identifier: Apache-2.0
// What can be done about a notification: cancel, send again, ask whether it would arrive now, read its content.

import { at, get, send } from "../../api.js";
import { html, useState } from "../../html.js";
import { Confirm, Dialog, Field } from "../../parts/forms.js";
import { Good, Trouble, Waiting, Warning } from "../../parts/notices.js";
import { Decision } from "../../parts/why.js";
import { useAct, useAnswer } from "../../use.js";
import { Content } from "./content.js";

function Cancel({ of, close, done }) {
  const act = useAct(async () => { await send("POST", at`/v1/notifications/${of.id}/cancel`); return done("It is cancelled."); });
  return html`<${Confirm} title="Cancel this notification?" yes="Cancel this one notification" act=${act} close=${close}>
    <p>It waits for its time. Cancelled, it is never sent; this cannot be taken back.</p></>`;
}

// "May double" as the dead letter says it; a role that may not read letters learns it from the refusal.
function useRisk(letter, refusal) {
  const answer = useAnswer(letter && at`/v1/dead-letters/${letter}`);
  const field = refusal?.slug === "resend-refused" ? refusal.fields[0]?.field : undefined;
  return { waiting: answer.waiting && !answer.data, state: field === "may_double" ? "may_double" : answer.data?.resend, why: field ? refusal.message : answer.data?.resend_why };
}

function Resend({ of, letter, close, done }) {
  const [flags, setFlags] = useState({ may_double: false, ignore_expiry: false });
  const act = useAct(async () => { await send("POST", at`/v1/notifications/${of.id}/resend`, flags); return done("It is being sent again."); });
  const risk = useRisk(letter, act.problem);
  const box = (name, label) => html`<p><label><input type="checkbox" checked=${flags[name]} onChange=${(event) => setFlags({ ...flags, [name]: event.target.checked })} /> ${label}</label></p>`;
  return html`<${Confirm} title="Send this notification again?" yes="Send this one again" act=${act} close=${close} disabled=${risk.waiting || (risk.state === "may_double" && !flags.may_double)}>
    ${risk.waiting && html`<${Waiting} what="Looking at its dead letter" />`}
    ${risk.state === "safe" && html`<p>It has not gone out: it is safe to send again. It goes past all limits.</p>`}
    ${risk.state === "may_double" && html`<${Warning}><strong>The recipient may get it twice.</strong> <bdi>${risk.why}</bdi></>${box("may_double", "Send it even so")}`}
    ${risk.state === "refused" && html`<${Warning}>As it is it will be refused: <bdi>${risk.why}</bdi></>`}
    ${of.reason_code === "expired" && box("ignore_expiry", "Send it although its time has run out")}
  </>`;
}

// A recipient's own address, or one that has to be typed: the console knows it masked alone.
function Explain({ of, searched, close }) {
  const [address, setAddress] = useState(searched ?? "");
  const question = { template: of.template, channel: of.channel, category: of.category, priority: of.priority };
  const act = useAct(() => send("POST", of.recipient_id ? at`/v1/recipients/${of.recipient_id}/explain` : "/v1/recipients/explain",
    of.recipient_id ? question : { ...question, address }, { key: undefined }));
  return html`<${Dialog} title="Would it reach the recipient now?" close=${close}>
    <p class="quiet">The gate is asked about the same template, channel and category, as of now. Nothing is sent.</p>
    <form onSubmit=${(event) => { event.preventDefault(); act.run(); }}>
      ${!of.recipient_id && html`<${Field} label="Its address" value=${address} set=${setAddress} hint="It went to an address and not to a recipient. Addresses are not shown here: type it." required />`}
      <p class="acts"><button type="submit" class="main" disabled=${act.running || (!of.recipient_id && !address)}>${act.running ? "Asking …" : "Ask the gate"}</button>
        <button type="button" onClick=${close}>Close</button></p>
    </form>
    <${Trouble} of=${act.problem} />
    ${act.done && html`<${Decision} of=${act.done} />`}
  </>`;
}

function Reveal({ of, close, show }) {
  const [ground, setGround] = useState("");
  const act = useAct(async () => {
    const content = await get(at`/v1/notifications/${of.id}/content`, { ground: ground.trim() });
    show(content);
    return content;
  });
  return html`<${Confirm} title="Show what the recipient was sent?" yes="Record it and show" act=${act} close=${close}>
    <p>This is recorded: your name, the time and this notification stand in the audit log before anything is shown.</p>
    <${Field} label="Why do you read it? (optional)" value=${ground} set=${setGround} placeholder="ticket 17" maxlength="500" />
  </>`;
}

export function Acts({ of, why, can, soon, searched }) {
  const [open, setOpen] = useState();
  const [said, setSaid] = useState();
  const [content, setContent] = useState();
  const close = () => setOpen(undefined);
  const done = (text) => { setSaid(text); soon(); return text; };
  const letter = can("dead:read") ? why?.why.find(({ evidence }) => evidence.sequence)?.evidence.sequence : undefined;
  const acts = [
    of.status === "scheduled" && can("notifications:send") && ["cancel", "Cancel it"],
    of.status === "failed" && can("dead:resend") && ["resend", "Send it again"],
    can("recipients:read") && ["explain", "Would it reach the recipient now?"],
    of.rendered_at && can("content:reveal") && !content && ["reveal", "Show the content"],
  ].filter(Boolean);
  return html`
    ${said && html`<${Good}>${said}</>`}
    ${acts.length > 0 && html`<p class="acts">${acts.map(([id, label]) => html`<button key=${id} type="button" onClick=${() => setOpen(id)}>${label}</button>`)}</p>`}
    ${open === "cancel" && html`<${Cancel} of=${of} close=${close} done=${done} />`}
    ${open === "resend" && html`<${Resend} of=${of} letter=${letter} close=${close} done=${done} />`}
    ${open === "explain" && html`<${Explain} of=${of} searched=${searched} close=${close} />`}
    ${open === "reveal" && html`<${Reveal} of=${of} close=${close} show=${setContent} />`}
    ${content && html`<${Content} of=${content} hide=${() => setContent(undefined)} />`}`;
}
