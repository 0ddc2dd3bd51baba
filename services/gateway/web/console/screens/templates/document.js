// SPDX-License-Identifier: Apache-2.0
// A version as a document (common/render/README.md), as the editor changes it. Pure.

// The parts of a channel's content, as the editor offers them; what a version has besides stays as it is.
const PARTS = {
  email: ["subject", "preheader", "html", "text"], sms: ["text"], whatsapp: ["reference", "text"], push: ["title", "text", "data"],
  inapp: ["title", "text", "data"], voice: ["text"], webhook: ["data"],
};
export const LABELS = { subject: "Subject", preheader: "Preheader", html: "HTML", text: "Text", title: "Title", data: "Data", reference: "Reference" };

export const partsOf = (channel) => PARTS[channel] ?? ["text"];

export function newDocument() {
  return { key: "", channel: "email", category: "transactional", locales: [{ locale: "en", subject: "", text: "" }], variables: [], sample: {} };
}

// What is published of a version that was read: a draft with what a person can write, under a number of its own.
const KEPT = ["key", "channel", "category", "locales", "fallback_locales", "variables", "partials", "sample", "default_priority"];
export function draftOf(version) {
  return Object.fromEntries(KEPT.filter((name) => version[name] !== undefined).map((name) => [name, version[name]]));
}

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
export const partText = (locale, part) => (locale[part] === undefined ? "" : asText(locale[part]));

// A copy with this part of this locale; an empty one is left out, as it would be refused.
export function withPart(document, index, part, text) {
  const locales = document.locales.map((locale, at) => {
    if (at !== index) return locale;
    const { [part]: _, ...rest } = locale;
    return text === "" ? rest : { ...rest, [part]: text };
  });
  return { ...document, locales };
}

export function withLocale(document, name) {
  const { locale: _, ...first } = document.locales[0] ?? {};
  return { ...document, locales: [...document.locales, { ...first, locale: name }] };
}

export const withoutLocale = (document, index) => ({ ...document, locales: document.locales.filter((_, at) => at !== index) });

// {value} or {wrong}: what is wrong with a text that ought to be JSON of this kind.
export function readJson(text, kind) {
  try {
    const value = JSON.parse(text.trim() === "" ? (kind === "array" ? "[]" : "{}") : text);
    const right = kind === "array" ? Array.isArray(value) : value !== null && typeof value === "object" && !Array.isArray(value);
    return right ? { value } : { wrong: kind === "array" ? "a list in [ ]" : "an object in { }" };
  } catch (error) {
    return { wrong: error.message };
  }
}
