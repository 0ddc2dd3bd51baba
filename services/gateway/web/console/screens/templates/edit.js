// SPDX-License-Identifier: Apache-2.0
// A new version of a template, or the first of a new one: written here, previewed beside, published as a draft.

import { send } from "../../api.js";
import { html, useState } from "../../html.js";
import { Field, Tabs } from "../../parts/forms.js";
import { Trouble } from "../../parts/notices.js";
import { go } from "../../router.js";
import { useAct } from "../../use.js";
import { CATEGORIES, CHANNELS } from "../../words.js";
import { LABELS, newDocument, partsOf, partText, readJson, withLocale, withoutLocale, withPart } from "./document.js";
import { Editor } from "./editor.js";
import { Looks } from "./looks.js";

const LONG = ["html", "text", "data"];

function Part({ locale, index, part, change }) {
  const value = partText(locale, part);
  const label = `${LABELS[part]} (${locale.locale})`;
  const set = (text) => change((document) => withPart(document, index, part, text));
  if (part === "html") return html`<div class="field"><span class="label">${label}</span><${Editor} key=${locale.locale} label=${label} value=${value} set=${set} /></div>`;
  return html`<${Field} label=${label} value=${value} set=${set} lines=${LONG.includes(part) ? 5 : undefined} />`;
}

function Locales({ document, change }) {
  const [index, setIndex] = useState(0);
  const [name, setName] = useState("");
  const now = Math.min(index, document.locales.length - 1);
  const locale = document.locales[now];
  const add = (event) => {
    event.preventDefault();
    if (name.trim() === "") return;
    change((before) => withLocale(before, name.trim()));
    setIndex(document.locales.length);
    setName("");
  };
  return html`<div class="acts"><${Tabs} label="Locale" tabs=${document.locales.map((each) => ({ id: each.locale, label: each.locale }))} now=${locale?.locale}
        choose=${(id) => setIndex(document.locales.findIndex((each) => each.locale === id))} />
      <form class="acts" onSubmit=${add}><label>New locale <input size="6" value=${name} placeholder="fa-AF" onInput=${(event) => setName(event.target.value)} /></label><button>Add</button></form>
      ${document.locales.length > 1 && html`<button type="button" onClick=${() => { change((before) => withoutLocale(before, now)); setIndex(0); }}>Leave ${locale.locale} out</button>`}
    </div>
    ${locale && partsOf(document.channel).map((part) => html`<${Part} key=${`${locale.locale} ${part}`} locale=${locale} index=${now} part=${part} change=${change} />`)}`;
}

// A text that ought to be JSON: the document gets it when it is.
function JsonField({ label, kind, value, set, hint }) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const { wrong } = readJson(text, kind);
  const type = (next) => {
    setText(next);
    const read = readJson(next, kind);
    if (!read.wrong) set(read.value);
  };
  return html`<${Field} label=${label} lines=${6} value=${text} set=${type} wrong=${wrong && `This is not JSON that fits: ${wrong}`} hint=${hint} dir="ltr" />`;
}

// `first`: the document that the editing begins with. `fixed`: key and channel are of a template that is there.
export function Edit({ first, fixed, version }) {
  const [document, change] = useState(first);
  const act = useAct(async () => {
    const made = await send("POST", "/v1/templates", { ...document, status: "draft", source: "tenant" });
    go("templates", [made.key], { channel: made.channel, version: made.version, tab: "preview" });
    return made;
  });
  const set = (name) => (value) => change((before) => ({ ...before, [name]: value }));
  const wrong = (name) => act.problem?.fields.find(({ field }) => field === name)?.detail;
  return html`<div class="split even">
    <form onSubmit=${(event) => { event.preventDefault(); act.run(); }}>
      <div class="filters">
        ${!fixed && html`<${Field} label="Key" value=${document.key} set=${set("key")} wrong=${wrong("key")} required pattern="[a-z0-9_\\-]{1,64}" hint="a-z 0-9 _ -" />
          <${Field} label="Channel" value=${document.channel} set=${set("channel")} choices=${CHANNELS} />`}
        <${Field} label="Category" value=${document.category} set=${set("category")} choices=${CATEGORIES} />
        <${Field} label="Version" value=${document.version ?? ""} set=${(value) => set("version")(value || undefined)} wrong=${wrong("version")} placeholder=${version ? `above ${version}` : "1.0.0"} />
      </div>
      <${Locales} document=${document} change=${change} />
      <${JsonField} label="Sample data" kind="object" value=${document.sample ?? {}} set=${set("sample")} hint="What previews and test sends are made with." />
      <details><summary>Variables</summary><${JsonField} label="Rules of the variables" kind="array" value=${document.variables ?? []} set=${set("variables")} /></details>
      <${Trouble} of=${act.problem} />
      <p class="acts"><button class="main" disabled=${act.running}>${act.running ? "Publishing …" : "Publish as a draft"}</button>
        <span class="quiet">New notifications take it when it is activated.</span></p>
    </form>
    <div><${Looks} key=${JSON.stringify(document.sample)} request=${{ source: document, channel: document.channel }} locales=${document.locales.map(({ locale }) => locale)} sample=${document.sample} /></div>
  </div>`;
}

export function New({ can }) {
  if (!can("templates:write")) return html`<h1>New template</h1><p>Your role may not write templates.</p>`;
  return html`<h1>New template</h1><${Edit} first=${newDocument()} />`;
}
