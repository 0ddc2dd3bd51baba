// SPDX-License-Identifier: Apache-2.0
// Fields and dialogs.

import { html, useEffect, useId, useRef } from "../html.js";
import { Trouble } from "./notices.js";

// A labelled input; `choices` makes it a list, `lines` a text of several lines. `set` gets the value as text.
export function Field({ label, value = "", set, choices, lines, hint, wrong, type = "text", ...rest }) {
  const id = useId();
  const about = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ") || undefined;
  const common = { id, value, "aria-describedby": about, "aria-invalid": wrong ? "true" : undefined, [choices ? "onChange" : "onInput"]: (event) => set(event.target.value), ...rest };
  const options = choices?.map((choice) => (typeof choice === "string" ? { value: choice, label: choice || "any" } : choice));
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${options && html`<select ...${common}>${options.map((option) => html`<option key=${option.value} value=${option.value} selected=${option.value === value}>${option.label}</option>`)}</select>`}
    ${!options && lines && html`<textarea rows=${lines} spellcheck=${false} dir="auto" ...${common}></textarea>`}
    ${!options && !lines && html`<input type=${type} autocomplete="off" dir="auto" ...${common} />`}
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    ${wrong && html`<p class="wrong" id=${`${id}-wrong`}>${wrong}</p>`}
  </div>`;
}

// The browser's own dialog: Escape closes it, the focus goes back to where it was.
export function Dialog({ title, close, children }) {
  const box = useRef();
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  return html`<dialog ref=${box} aria-labelledby=${id} onClose=${close} onClick=${(event) => event.target === box.current && close()}>
    <div class="dialog"><h2 id=${id}>${title}</h2>${children}</div>
  </dialog>`;
}

// What cannot be taken back is asked for: `act` is of useAct().
export function Confirm({ title, yes, act, close, disabled, children }) {
  const run = async () => { if (await act.run() !== undefined) close(); };
  return html`<${Dialog} title=${title} close=${close}>
    ${children}
    <${Trouble} of=${act.problem} />
    <p class="acts"><button type="button" class="main" disabled=${act.running || disabled} onClick=${run}>${act.running ? "Working …" : yes}</button>
      <button type="button" onClick=${close}>Cancel</button></p>
  </>`;
}

// One of several views of the same thing. tabs: [{id, label}].
export function Tabs({ label, tabs, now, choose }) {
  const list = useRef();
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const rtl = getComputedStyle(list.current).direction === "rtl" ? -1 : 1;
    const index = tabs.findIndex((tab) => tab.id === now);
    const next = tabs[(index + step * rtl + tabs.length) % tabs.length];
    choose(next.id);
    list.current.querySelector(`[data-tab="${next.id}"]`).focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${move}>${tabs.map((tab) => html`
    <button key=${tab.id} type="button" role="tab" data-tab=${tab.id} aria-selected=${tab.id === now ? "true" : "false"}
      tabindex=${tab.id === now ? 0 : -1} onClick=${() => choose(tab.id)}>${tab.label}</button>`)}</div>`;
}
