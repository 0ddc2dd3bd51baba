// SPDX-License-Identifier: Apache-2.0
// What both elements have: the session, the texts, and elements made without HTML.

import { sessionOf } from "./session.js";
import { STRINGS } from "./strings.js";
import { styled } from "./style.js";

// An element with attributes, listeners ("onclick") and children; strings become text.
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

export function bell() {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("fill", "currentColor");
  path.setAttribute("d", "M12 22a2.2 2.2 0 0 0 2.2-2H9.8A2.2 2.2 0 0 0 12 22zm6.5-6V11a6.5 6.5 0 0 0-5-6.3V4a1.5 1.5 0 0 0-3 0v.7a6.5 6.5 0 0 0-5 6.3v5L4 17.5V19h16v-1.5z");
  svg.append(path);
  return svg;
}

// The address of a notification that may be opened, or undefined.
export function safeUrl(text, base = document.baseURI) {
  if (typeof text !== "string" || text === "") return undefined;
  try {
    const url = new URL(text, base);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

export class StentorElement extends HTMLElement {
  static observedAttributes = ["api", "token-url", "token", "strings", "inline", "target"];
  #strings = {};
  #getToken;

  constructor() {
    super();
    this.root = styled(this.attachShadow({ mode: "open" }));
  }

  // async () => ({token, expires_at}), in the place of token-url.
  get getToken() { return this.#getToken; }
  set getToken(value) { this.#getToken = value; this.reconnect(); }
  get strings() { return this.#strings; }
  set strings(value) { this.#strings = { ...value }; if (this.isConnected) this.draw(); }

  say(name, values = {}) {
    const text = this.#strings[name] ?? STRINGS[name] ?? name;
    return String(text).replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
  }

  get language() {
    return this.closest("[lang]")?.lang || navigator.language;
  }

  get rtl() {
    return getComputedStyle(this).direction === "rtl";
  }

  connectedCallback() {
    for (const name of ["getToken", "strings"]) { // set before the element was defined
      if (Object.hasOwn(this, name)) {
        const value = this[name];
        delete this[name];
        this[name] = value;
      }
    }
    this.reconnect();
  }

  disconnectedCallback() {
    this.detach();
  }

  attributeChangedCallback(name, before, value) {
    if (before === value) return;
    if (name === "strings") {
      try { this.strings = JSON.parse(value); } catch { console.error("stentor: the attribute strings is no JSON"); }
    } else if (this.isConnected && this.session) {
      this.reconnect();
    }
  }

  reconnect() {
    if (!this.isConnected) return;
    this.detach();
    this.draw();
    this.session = sessionOf(this);
    if (this.session) {
      this.session.join();
      this.leaving = new AbortController();
      this.attached(this.leaving.signal);
    }
  }

  detach() {
    this.leaving?.abort();
    this.session?.leave();
    this.session = undefined;
  }

  announce(text) {
    this.live.textContent = text;
  }
}
