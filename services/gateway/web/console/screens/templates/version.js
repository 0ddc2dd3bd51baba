// SPDX-License-Identifier: Apache-2.0
// One version of a template: what it is, what may be done with it, and views of it.

import { at, send } from "../../api.js";
import { html, useState } from "../../html.js";
import { Confirm, Field, Tabs } from "../../parts/forms.js";
import { Answer, Warning } from "../../parts/notices.js";
import { Facts, Pill, When } from "../../parts/show.js";
import { Who } from "../../parts/who.js";
import { Link, refine } from "../../router.js";
import { useAct, useAnswer } from "../../use.js";
import { Diff } from "./diff.js";
import { draftOf } from "./document.js";
import { Edit } from "./edit.js";
import { Looks } from "./looks.js";
import { Shadow, TestSend } from "./trial.js";

const LIFE = {
  activate: { from: ["draft"], yes: "Activate", says: "New notifications take this version from now on." },
  archive: { from: ["draft", "active"], yes: "Archive", says: "New notifications do not take it any more. It never comes back." },
  deprecate: { from: ["active"], yes: "Deprecate", says: "It is sent as before; each caller that uses it is warned." },
};

function Life({ act, version, close, done }) {
  const { yes, says } = LIFE[act];
  const [approver, setApprover] = useState("");
  const needs = act === "activate" && version.source === "ai_drafted";
  const path = at`/v1/templates/${version.key}/${version.version}/${act}`;
  const run = useAct(() => send("POST", `${path}?channel=${version.channel}`, needs ? { approved_by: approver } : {}).then((made) => { done(); return made; }));
  return html`<${Confirm} title=${`${yes} ${version.key} ${version.version}?`} yes=${yes} act=${run} close=${close} disabled=${needs && approver === ""}>
    <p>${says}</p>${needs && html`<${Field} label="Approved by" value=${approver} set=${setApprover} hint="A version that was drafted by a machine needs a person's name." />`}</>`;
}

function Head({ version, versions, route, can, again }) {
  const [act, setAct] = useState();
  const own = route.query.platform !== "true";
  const offered = own && can("templates:activate") ? Object.keys(LIFE).filter((name) => LIFE[name].from.includes(version.status)) : [];
  return html`<h1><${Link} to="templates">Templates</> / ${version.key} <${Pill} state=${version.status} /></h1>
    <div class="filters">
      <${Field} label="Version" value=${version.version} set=${(value) => refine(route, { ...route.query, version: value })}
        choices=${[...versions].reverse().map((each) => ({ value: each.version, label: `${each.version} (${each.status})` }))} />
      <div class="acts">${offered.map((name) => html`<button key=${name} type="button" class=${name === "activate" ? "main" : ""} onClick=${() => setAct(name)}>${LIFE[name].yes}</button>`)}</div>
    </div>
    <${Facts} of=${{ Channel: version.channel, Category: version.category, Published: html`<${When} at=${version.published_at} />`, By: version.published_by && html`<${Who} of=${version.published_by} />`,
      "Approved by": version.approved_by, Source: version.source, Provenance: version.provenance, Supersedes: version.supersedes }} />
    ${version.deprecated_at && html`<${Warning}>Deprecated: callers should leave it from <${When} at=${version.deprecated_at} />.</>`}
    ${act && html`<${Life} act=${act} version=${version} close=${() => setAct(undefined)} done=${again} />`}`;
}

function tabsOf(can, own) {
  return [{ id: "preview", label: "Preview" }, { id: "diff", label: "Differences" },
    own && can("templates:write") && can("notifications:send") && { id: "test", label: "Test" }, own && { id: "shadow", label: "Shadow" },
    own && can("templates:write") && { id: "edit", label: "New version" }].filter(Boolean);
}

export function Version({ route, can }) {
  const { channel, version: asked, platform, tab = "preview", from, job } = route.query;
  const key = route.parts[0];
  const own = platform !== "true";
  const answer = useAnswer(at`/v1/templates/${key}`, { channel, version: asked, platform });
  const set = (change) => refine(route, { ...route.query, ...change });
  return html`<${Answer} of=${answer}>${(version) => html`
    <${Head} version=${version} versions=${version.versions ?? [version]} route=${route} can=${can} again=${answer.again} />
    <${Tabs} label="Views" tabs=${tabsOf(can, own)} now=${tab} choose=${(id) => set({ tab: id })} />
    <div key=${`${version.version} ${tab}`}>
      ${tab === "preview" && html`<${Looks} request=${{ template: key, version: version.version, channel: version.channel }} locales=${version.locales.map(({ locale }) => locale)} sample=${version.sample} platform=${!own} />`}
      ${tab === "diff" && html`<${Diff} version=${version} versions=${version.versions ?? [version]} from=${from} set=${(value) => set({ from: value })} platform=${platform} />`}
      ${tab === "test" && html`<${TestSend} version=${version} />`}
      ${tab === "shadow" && html`<${Shadow} version=${version} can=${can} job=${job} choose=${(id) => set({ job: id })} />`}
      ${tab === "edit" && html`<${Edit} first=${draftOf(version)} fixed version=${(version.versions ?? [version]).at(-1).version} />`}
    </div>`}</>`;
}
