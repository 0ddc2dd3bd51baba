// SPDX-License-Identifier: Apache-2.0
// Who is signed in, and how one does.

import { get } from "./api.js";
import { html, useEffect, useState } from "./html.js";

export function SignIn({ over }) {
  const [ways, setWays] = useState({});
  useEffect(() => { get("/console/ways").then(setWays, () => {}); }, []);
  return html`<main class="sign-in" id="main">
    <h1>Stentor</h1>
    <p>${over ? "Your session is over." : "You are not signed in."}</p>
    ${ways.oidc && html`<p><a class="button main" href="/console/oidc">Sign in</a></p>`}
    <p>An operator makes a link that signs one person in, once, within ten minutes:</p>
    <pre tabindex="0">stentor console login</pre>
  </main>`;
}

export async function signOut() {
  await fetch("/console/logout", { method: "POST", redirect: "manual" });
  location.reload();
}
