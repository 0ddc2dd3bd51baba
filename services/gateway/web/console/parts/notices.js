// SPDX-License-Identifier: Apache-2.0
// What a screen says in the place of its content, or above it.

import { html } from "../html.js";

// An answer that is a problem: what is wrong, which fields, and how to find it in the service's log.
export function Trouble({ of, again }) {
  if (!of) return null;
  const scope = of.status === 403 ? "Ask an operator for a role that may do this." : undefined;
  return html`<div class="notice bad" role="alert">
    <p><strong>${of.title ?? (of.status ? "This did not work" : "No connection")}</strong> ${of.message}</p>
    ${of.fields?.length > 1 && html`<ul>${of.fields.map(({ field, detail }) => html`<li key=${field}><code>${field}</code> ${detail}</li>`)}</ul>`}
    ${of.fields?.length === 1 && html`<p>Field: <code>${of.fields[0].field}</code></p>`}
    ${scope && html`<p>${scope}</p>`}
    ${of.instance && html`<p class="quiet">In the log of the service: <code>${of.instance}</code></p>`}
    ${again && html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`;
}

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;
export const Waiting = ({ what = "Loading" }) => html`<p class="wait" role="status">${what} …</p>`;
export const Good = ({ children }) => html`<div class="notice good" role="status">${children}</div>`;
export const Warning = ({ children }) => html`<div class="notice warn">${children}</div>`;

// An answer's parts in order: the problem, waiting, what `children` makes of the data.
export function Answer({ of, what, children }) {
  return html`<${Trouble} of=${of.problem} again=${of.again} />
    ${of.data === undefined && of.waiting && html`<${Waiting} what=${what} />`}
    ${of.data !== undefined && children(of.data)}`;
}
