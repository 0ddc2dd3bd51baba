// SPDX-License-Identifier: Apache-2.0
// How a version looks: each locale, at a width, light or dark, with data.

import { send } from "../../api.js";
import { html, useEffect, useState } from "../../html.js";
import { Field } from "../../parts/forms.js";
import { Trouble, Waiting, Warning } from "../../parts/notices.js";
import { Preview } from "../../parts/preview.js";
import { LABELS } from "./document.js";

const SETTLED_MS = 400; // without a further key

// POST /v1/templates/preview, once what is asked has settled: {look, problem, waiting}; the look before stays meanwhile.
function useLook(request, platform) {
  const [state, setState] = useState({ waiting: true });
  const asked = JSON.stringify(request);
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    setState((before) => ({ ...before, waiting: true }));
    const timer = setTimeout(() => send("POST", `/v1/templates/preview${platform ? "?platform=true" : ""}`, request, { signal, key: undefined }).then(
      (look) => setState({ look, waiting: false }),
      (problem) => signal.aborted || setState((before) => ({ look: before.look, problem, waiting: false }))), state.look ? SETTLED_MS : 0);
    return () => { clearTimeout(timer); leaving.abort(); };
  }, [asked, platform]);
  return state;
}

function Parts({ look, width, dark }) {
  const { html: content, text, ...short } = look.parts;
  return html`<dl class="facts">${Object.entries(short).map(([name, value]) => html`<div key=${name}><dt>${LABELS[name] ?? name}</dt>
      <dd dir=${look.direction}>${typeof value === "string" ? value : html`<code>${JSON.stringify(value)}</code>`}</dd></div>`)}
      ${look.sms && html`<div><dt>Segments</dt><dd>${look.sms.segments} of ${look.sms.alphabet}, ${look.sms.units} units</dd></div>`}</dl>
    ${content !== undefined && width !== "text" && html`<${Preview} title=${`Content in ${look.locale}`} content=${content} width=${Number(width) || undefined} dark=${dark} />`}
    ${text !== undefined && (content === undefined || width === "text") && html`<pre class="plain" tabindex="0" dir=${look.direction} aria-label=${`Text in ${look.locale}`}>${text}</pre>`}`;
}

function Look({ request, locale, width, dark, platform }) {
  const { look, problem, waiting } = useLook({ ...request, locale }, platform);
  return html`<section class="panel" aria-label=${`Preview in ${locale}`} aria-busy=${waiting ? "true" : "false"}>
    <h2>${locale} ${look && look.locale !== locale && html`<span class="quiet">shown in ${look.locale}</span>`} ${look?.direction === "rtl" && html`<span class="quiet">right to left</span>`}</h2>
    <${Trouble} of=${problem} />
    ${!look && !problem && html`<${Waiting} what="Rendering" />`}
    ${look?.warnings.map((text) => html`<${Warning} key=${text}>${text}</>`)}
    ${look && html`<${Parts} look=${look} width=${width} dark=${dark} />`}
  </section>`;
}

const WIDTHS = [{ value: "", label: "full width" }, { value: "320", label: "320 (phone)" }, { value: "600", label: "600 (mail)" }, { value: "text", label: "plain text" }];

// request: of the API, but for locale and data; `sample` is the data to begin with.
export function Looks({ request, locales, sample, platform }) {
  const [width, setWidth] = useState("");
  const [dark, setDark] = useState("");
  const [which, setWhich] = useState("");
  const [text, setText] = useState(() => JSON.stringify(sample ?? {}, null, 2));
  const [data, setData] = useState(sample ?? {});
  const [wrong, setWrong] = useState();
  const type = (value) => {
    setText(value);
    try {
      const read = JSON.parse(value);
      setWrong(undefined);
      setData(read);
    } catch (error) {
      setWrong(error.message);
    }
  };
  const shown = which ? [which] : locales;
  return html`<div class="filters">
      <${Field} label="Locale" value=${which} set=${setWhich} choices=${[{ value: "", label: "all" }, ...locales.map((name) => ({ value: name, label: name }))]} />
      <${Field} label="Width" value=${width} set=${setWidth} choices=${WIDTHS} />
      <${Field} label="Colours" value=${dark} set=${setDark} choices=${[{ value: "", label: "light" }, { value: "dark", label: "dark" }]} />
    </div>
    <details class="panel"><summary>Data</summary><${Field} label="Data of the preview" lines=${6} value=${text} set=${type} wrong=${wrong} dir="ltr" /></details>
    <div class="looks">${shown.map((locale) => html`<${Look} key=${locale} request=${{ ...request, data }} locale=${locale} width=${width} dark=${dark === "dark"} platform=${platform} />`)}</div>`;
}
