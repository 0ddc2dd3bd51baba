// SPDX-License-Identifier: Apache-2.0
// What a recipient was sent, of any channel.

import { html, useState } from "../../html.js";
import { Tabs } from "../../parts/forms.js";
import { Preview } from "../../parts/preview.js";
import { bytes, Facts } from "../../parts/show.js";

const name = (field) => `${field[0].toUpperCase()}${field.slice(1)}`.replaceAll("_", " ");
const value = (field, given) => (field === "attachments" ? given.map((file) => `${file.name} (${file.content_type}, ${bytes(file.size_bytes)})`) : [given].flat()).join(", ");

export function Content({ of, hide }) {
  const { kind, html: page, text, ...rest } = of.content;
  const views = [page && { id: "html", label: "As it looks" }, text && { id: "text", label: "Text" }].filter(Boolean);
  const [view, setView] = useState(views[0]?.id);
  return html`<section class="panel" aria-labelledby="content"><h3 id="content">What was sent</h3>
    <${Facts} of=${{ "To": of.to, "Language": of.locale, ...Object.fromEntries(Object.entries(rest).map(([field, given]) => [name(field), value(field, given)])) }} />
    ${views.length > 1 && html`<${Tabs} label="Content" tabs=${views} now=${view} choose=${setView} />`}
    ${view === "html" && html`<${Preview} title=${`The ${kind} as it looks`} content=${page} />`}
    ${view === "text" && html`<pre tabindex="0" dir="auto">${text}</pre>`}
    <p class="acts"><button type="button" onClick=${hide}>Hide the content</button></p>
  </section>`;
}
