// SPDX-License-Identifier: Apache-2.0
// What differs between two versions.

import { at } from "../../api.js";
import { html } from "../../html.js";
import { Field } from "../../parts/forms.js";
import { Answer, Empty, Warning } from "../../parts/notices.js";
import { useAnswer } from "../../use.js";

const MEANS = { "+": "added", "-": "removed", " ": "" };
const show = (value) => (value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value));

function Change({ of }) {
  return html`<section class="panel" aria-label=${of.at}><h2 class="mono">${of.at}</h2>
    ${of.lines ? html`<pre class="diff" tabindex="0" dir="auto">${of.lines.map((line, index) => html`<span key=${index} class=${MEANS[line.op]}>${line.op} ${line.text}\n</span>`)}</pre>`
      : html`<pre class="diff" tabindex="0" dir="auto"><span class="removed">- ${show(of.from)}\n</span><span class="added">+ ${show(of.to)}\n</span></pre>`}</section>`;
}

export function Diff({ version, versions, from, set, platform }) {
  const others = versions.filter((each) => each.version !== version.version).map((each) => each.version);
  const before = from && others.includes(from) ? from : others.filter((each) => versions.findIndex((v) => v.version === each) < versions.findIndex((v) => v.version === version.version)).at(-1) ?? others[0];
  const answer = useAnswer(before && at`/v1/templates/${version.key}/diff`, { from: before, to: version.version, channel: version.channel, platform });
  if (!before) return html`<${Empty}>This is the only version.</>`;
  return html`<div class="filters"><${Field} label=${`From version, to ${version.version}`} value=${before} set=${set} choices=${others} /></div>
    <${Answer} of=${answer}>${({ changes, complete }) => html`${changes.length === 0 && html`<${Empty}>They have the same content.</>`}
      ${changes.map((each) => html`<${Change} key=${each.at} of=${each} />`)}
      ${!complete && html`<${Warning}>More differs than is listed.</>`}`}</>`;
}
