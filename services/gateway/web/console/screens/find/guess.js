// SPDX-License-Identifier: Apache-2.0
// What was typed into the search box: which filter of GET /v1/notifications it is for.

import { useFirst } from "../../use.js";

export const KINDS = {
  recipient_id: "recipient", address: "address", correlation_id: "correlation or order id", source_event: "source event's id", batch_id: "batch",
  vendor_message_id: "vendor's message id", template: "template" };

const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;
const isId = (text, prefix) => text.toLowerCase().startsWith(prefix) && ULID.test(text.slice(prefix.length));
// As the API writes it, however it was typed.
export const idOf = (text, prefix) => (isId(text, prefix) ? prefix + text.slice(prefix.length).toUpperCase() : undefined);

// Filters in the order in which they are tried; what only one fits is not looked for in others.
export function kindsOf(text) {
  if (isId(text, "rcp_")) return ["recipient_id"];
  if (isId(text, "dbt_")) return ["batch_id"];
  if (/^<.+>$/.test(text)) return ["vendor_message_id"];
  if (/^[^\s@]+@[^\s@]+$/.test(text)) return ["address", "vendor_message_id"];
  if (/^\+[\d ().-]{6,}$/.test(text) || /^https?:\/\//.test(text)) return ["address"];
  const template = /^[a-z0-9][a-z0-9._-]{0,63}$/.test(text) ? ["template"] : [];
  return ["correlation_id", "source_event", "vendor_message_id", ...template];
}

export function valueOf(kind, text) {
  return { recipient_id: idOf(text, "rcp_"), batch_id: idOf(text, "dbt_") }[kind] ?? text;
}

// {kind, tried, waiting, problem}: `as` is what the reader says that it is; without it the first that finds something. kind undefined: none did.
export function useKind(text, as) {
  const tried = !text ? [] : as ? [as] : kindsOf(text);
  return { ...useFirst("/v1/notifications", tried.map((kind) => ({ kind, query: { [kind]: valueOf(kind, text) } }))), tried };
}
