// SPDX-License-Identifier: Apache-2.0
// Where the reader is: "#/find/ntf_01?status=failed", so that every view has an address that can be sent on.

import { html, useEffect, useState } from "./html.js";

// What a stranger's link holds may be no such encoding.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function readRoute(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [screen, ...rest] = path.split("/");
  return { screen, parts: rest.map(decoded), query: Object.fromEntries(new URLSearchParams(query)) };
}

// place("find", ["ntf_01"], {status: "failed"})
export function place(screen, parts = [], query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const path = [screen, ...parts.map(encodeURIComponent)].join("/");
  return `#/${path}${given.length > 0 ? `?${new URLSearchParams(given)}` : ""}`;
}

export const go = (screen, parts, query) => { location.hash = place(screen, parts, query); };

// Changes the query of this view, without a step of the browser's history.
export function refine(route, query) {
  history.replaceState(null, "", place(route.screen, route.parts, query));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute() {
  const [route, setRoute] = useState(() => readRoute(location.hash));
  useEffect(() => {
    const move = () => setRoute(readRoute(location.hash));
    addEventListener("hashchange", move);
    move(); // it may have changed since the first drawing
    return () => removeEventListener("hashchange", move);
  }, []);
  return route;
}

export const Link = ({ to, parts, query, children, ...rest }) => html`<a href=${place(to, parts, query)} ...${rest}>${children}</a>`;
