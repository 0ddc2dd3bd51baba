// SPDX-License-Identifier: Apache-2.0
// Who did it, as the API says: "key 5d6d2a9bb03fc73f", the id alone, or "user ada". A key's name stands beside its id for a reader who may list the tenant's keys.

import { get, tenantNow } from "../api.js";
import { html, useEffect, useState } from "../html.js";

const KEY = /^(?:key )?([0-9a-f]{16})$/;
const NONE = new Map();
const asked = new Map(); // tenant: a promise of its keys' names by id
let may = false;

// The reader has keys:manage.
export function allowNames(yes) {
  may = yes;
}

function names() {
  const tenant = tenantNow();
  if (!may) return Promise.resolve(NONE);
  if (!asked.has(tenant)) {
    asked.set(tenant, get("/v1/api-keys", { state: "all", limit: 1_000 }).then(
      ({ data }) => new Map(data.map((key) => [key.key_id, key.name])),
      () => { asked.delete(tenant); return NONE; }));
  }
  return asked.get(tenant);
}

export function Who({ of }) {
  const id = KEY.exec(of ?? "")?.[1];
  const [name, setName] = useState();
  useEffect(() => {
    let gone = false;
    setName(undefined);
    if (id) names().then((all) => gone || setName(all.get(id)));
    return () => { gone = true; };
  }, [id]);
  if (!id) return html`<bdi>${of ?? "–"}</bdi>`;
  return html`${name && html`<bdi>${name}</bdi> `}<span class="mono ${name ? "quiet" : ""}">${id}</span>`;
}
