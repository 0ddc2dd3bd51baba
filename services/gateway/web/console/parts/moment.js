// SPDX-License-Identifier: Apache-2.0
// A time that is chosen: in the browser's zone for the reader, in UTC for the API.

import { html } from "../html.js";
import { Field } from "./forms.js";

// "2026-11-27T12:00:00.000Z" to "2026-11-27T13:00", as <input type="datetime-local"> has it.
export function toLocal(at) {
  const time = at ? new Date(at) : undefined;
  if (!time || Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export const toUtc = (local) => (local ? new Date(local).toISOString() : undefined);

// `set` gets RFC 3339 in UTC, or undefined.
export const Moment = ({ value, set, ...rest }) => html`<${Field} type="datetime-local" value=${toLocal(value)} set=${(local) => set(toUtc(local))} ...${rest} />`;
