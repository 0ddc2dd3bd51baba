// SPDX-License-Identifier: Apache-2.0
// Would a notification reach this recipient now? The gate is asked, and nothing is made.

import { at, send } from "../../api.js";
import { html, useState } from "../../html.js";
import { Field } from "../../parts/forms.js";
import { Trouble } from "../../parts/notices.js";
import { Decision } from "../../parts/why.js";
import { useAct } from "../../use.js";
import { CATEGORIES, CHANNELS } from "../../words.js";

export function Reach({ id }) {
  const [given, setGiven] = useState({ channel: "email", category: "", template: "" });
  const act = useAct(() => send("POST", at`/v1/recipients/${id}/explain`, Object.fromEntries(Object.entries(given).filter(([, value]) => value)), { key: undefined }));
  const set = (change) => { setGiven({ ...given, ...change }); act.clear(); };
  const wrong = (field) => act.problem?.fields.find((each) => each.field === field)?.detail;
  return html`<div class="panel" data-part="reach"><h2>Would it reach them now?</h2>
    <form onSubmit=${(event) => { event.preventDefault(); act.run(); }}>
      <div class="filters">
        <${Field} label="Channel" value=${given.channel} set=${(channel) => set({ channel })} choices=${CHANNELS} />
        <${Field} label="Category" value=${given.category} set=${(category) => set({ category })}
          choices=${[{ value: "", label: "the template's, or transactional" }, ...CATEGORIES.map((value) => ({ value, label: value }))]} />
        <${Field} label="Template" value=${given.template} set=${(template) => set({ template: template.trim() })} maxlength="64" wrong=${wrong("template")} placeholder="any" />
        <button type="submit" disabled=${act.running}>${act.running ? "Asking …" : "Ask the gate"}</button>
      </div>
    </form>
    <${Trouble} of=${act.problem} />
    ${act.done && html`<${Decision} of=${act.done} />`}
  </div>`;
}
