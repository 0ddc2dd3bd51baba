// SPDX-License-Identifier: Apache-2.0
// A batch's commands, those that its status takes (common/model/batch.c).

import { at, send } from "../../api.js";
import { html, useState } from "../../html.js";
import { Confirm } from "../../parts/forms.js";
import { Moment } from "../../parts/moment.js";
import { Trouble } from "../../parts/notices.js";
import { number } from "../../parts/show.js";
import { useAct } from "../../use.js";

const members = (of) => (of.recipient_query !== undefined && !of.chosen ? "the recipients that its query chooses then" : `${number(of.members)} ${of.members === 1 ? "member" : "members"}`);

function Start({ of, act, close }) {
  return html`<${Confirm} title="Start it now?" yes="Start" act=${{ ...act, run: () => act.run("start") }} close=${close}>
    <p>Template <strong>${of.template} ${of.template_version}</strong> goes to <strong>${members(of)}</strong>
      ${of.rate_per_second > 0 ? `, ${number(of.rate_per_second)} a second` : ", as fast as the pipeline takes it"}.</p></>`;
}

function Schedule({ of, act, close }) {
  const [time, setTime] = useState(of.scheduled_for ?? undefined);
  return html`<${Confirm} title="When is it to start?" yes="Schedule" act=${{ ...act, run: () => act.run("schedule", { scheduled_for: time }) }} close=${close} disabled=${!time}>
    <${Moment} label="Start" value=${time} set=${setTime} hint="In your browser's time zone." wrong=${act.problem?.fields?.[0]?.detail} />
    <p>It goes to <strong>${members(of)}</strong> then.</p></>`;
}

function Cancel({ of, act, close }) {
  return html`<${Confirm} title="Cancel it for good?" yes="Cancel the batch" act=${{ ...act, run: () => act.run("cancel") }} close=${close}>
    <p>${of.accepted > 0 ? html`The <strong>${number(of.accepted)}</strong> that are accepted are sent all the same; nothing more is made, and the other members are deleted.`
      : html`Nothing is sent, and <strong>${members(of)}</strong> are deleted.`} A cancelled batch cannot be started again.</p></>`;
}

export function Commands({ of, did }) {
  const [asking, ask] = useState();
  const act = useAct(async (word, body) => {
    const batch = await send("POST", `${at`/v1/batches/${of.id}`}/${word}`, body, { key: undefined });
    did();
    return batch;
  });
  const close = () => { act.clear(); ask(undefined); };
  const open = ["draft", "scheduled", "running"].includes(of.status);
  const waits = ["draft", "scheduled"].includes(of.status);
  const empty = of.members === 0 && of.recipient_query === undefined;
  if (!open) return null;
  return html`<p class="acts">
      ${waits && html`<button type="button" class="main" disabled=${empty} onClick=${() => ask("start")}>Start …</button>
        <button type="button" disabled=${empty} onClick=${() => ask("schedule")}>Schedule …</button>`}
      ${!of.paused && of.status !== "draft" && html`<button type="button" disabled=${act.running} onClick=${() => act.run("pause")}>Pause</button>`}
      ${of.paused && html`<button type="button" class="main" disabled=${act.running} onClick=${() => act.run("resume")}>Resume</button>`}
      <button type="button" class="danger" onClick=${() => ask("cancel")}>Cancel the batch …</button>
      ${waits && empty && html`<span class="quiet">It has no members yet.</span>`}</p>
    ${!asking && html`<${Trouble} of=${act.problem} />`}
    ${asking === "start" && html`<${Start} of=${of} act=${act} close=${close} />`}
    ${asking === "schedule" && html`<${Schedule} of=${of} act=${act} close=${close} />`}
    ${asking === "cancel" && html`<${Cancel} of=${of} act=${act} close=${close} />`}`;
}
