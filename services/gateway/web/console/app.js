// SPDX-License-Identifier: Apache-2.0
// The frame around the screens: who, which tenant, where to go. A screen is loaded when it is opened first.

import { chooseTenant, events, get, Problem, tenantBefore, tenantNow } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { Trouble, Waiting } from "./parts/notices.js";
import { allowNames } from "./parts/who.js";
import { go, Link, readRoute, refine, useRoute } from "./router.js";
import { signOut, SignIn } from "./session.js";
import { useDisplay } from "./display.js";

// Without its scope a screen is not offered.
const SCREENS = [
  { id: "live", title: "Live", scope: "notifications:read", load: () => import("./screens/live.js") },
  { id: "find", title: "Find", scope: "notifications:read", load: () => import("./screens/find.js") },
  { id: "dead", title: "Dead letters", scope: "dead:read", load: () => import("./screens/dead.js") },
  { id: "templates", title: "Templates", scope: "templates:read", load: () => import("./screens/templates.js") },
  { id: "recipients", title: "Recipients", scope: "recipients:read", load: () => import("./screens/recipients.js") },
  { id: "suppressions", title: "Suppressions", scope: "suppressions:read", load: () => import("./screens/suppressions.js") },
  { id: "batches", title: "Batches", scope: "batches:read", load: () => import("./screens/batches.js") },
  { id: "health", title: "Health", scope: "ops:read", load: () => import("./screens/health.js") },
];

function useScreen(screen) {
  const [loaded, setLoaded] = useState({});
  useEffect(() => {
    let gone = false;
    screen?.load().then((module) => gone || setLoaded({ of: screen, Shown: module.default }), () => gone || setLoaded({ of: screen, problem: new Problem(0) }));
    return () => { gone = true; };
  }, [screen]);
  return loaded.of === screen ? loaded : {};
}

function Tenant({ me, change }) {
  const bounded = me.tenants?.length > 0 && !me.operator;
  const [text, setText] = useState(tenantNow());
  if (bounded && me.tenants.length === 1) return html`<span class="tenant">Tenant <strong>${me.tenants[0]}</strong></span>`;
  if (bounded) {
    return html`<label class="tenant">Tenant <select onChange=${(event) => change(event.target.value)}>${me.tenants.map((name) => html`
      <option key=${name} value=${name} selected=${name === tenantNow()}>${name}</option>`)}</select></label>`;
  }
  const submit = (event) => { event.preventDefault(); change(text.trim()); };
  return html`<form class="tenant" onSubmit=${submit}><label for="tenant">Tenant</label>
    <input id="tenant" size="14" autocomplete="off" placeholder="platform" value=${text} onInput=${(event) => setText(event.target.value)} onBlur=${submit} /></form>`;
}

function Display() {
  const [display, set] = useDisplay();
  return html`<details class="menu"><summary>Display</summary><div>
    <label>Colours <select onChange=${(event) => set({ theme: event.target.value })}>${["system", "light", "dark"].map((theme) => html`
      <option key=${theme} selected=${theme === display.theme}>${theme}</option>`)}</select></label>
    <label>Direction <select onChange=${(event) => set({ dir: event.target.value })}>${[["ltr", "left to right"], ["rtl", "right to left"]].map(([value, label]) => html`
      <option key=${value} value=${value} selected=${value === display.dir}>${label}</option>`)}</select></label>
  </div></details>`;
}

function Head({ me, screens, now, change }) {
  return html`<header class="top">
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <strong class="brand">Stentor</strong>
    <nav aria-label="Screens">${screens.map(({ id, title }) => html`<${Link} key=${id} to=${id} aria-current=${id === now ? "page" : undefined}>${title}</>`)}</nav>
    <div class="who">
      <${Tenant} me=${me} change=${change} />
      <${Display} />
      <details class="menu"><summary><bdi>${me.user ?? me.key_id}</bdi> (${me.role})</summary><div>
        <button type="button" onClick=${signOut}>Sign out</button>
      </div></details>
    </div>
  </header>`;
}

// A link may name a tenant, "#/find?tenant=acme", which an operator's session does not.
function beginTenant() {
  const route = readRoute(location.hash);
  const { tenant, ...query } = route.query;
  chooseTenant(tenant ?? tenantBefore() ?? "");
  if (tenant !== undefined) refine(route, query);
}

// me: {data, problem, over}
function useMe() {
  const [me, setMe] = useState({});
  const [round, setRound] = useState(0);
  useEffect(() => {
    beginTenant();
    const asking = get("/v1/me");
    asking.catch((problem) => { // a tenant of an earlier session
      if (![403, 404, 422].includes(problem.status) || !tenantNow()) throw problem;
      chooseTenant("");
      return get("/v1/me");
    }).then((data) => {
      if (!tenantNow() && data.tenants?.length > 0 && !data.operator) chooseTenant(data.tenants[0]);
      allowNames(data.scopes.includes("keys:manage"));
      setMe({ data });
    }, (problem) => setMe(problem.status === 401 ? { signedOut: true } : { problem }));
    const end = () => setMe((before) => ({ signedOut: true, over: before.data !== undefined || before.over }));
    events.addEventListener("session", end);
    return () => events.removeEventListener("session", end);
  }, [round]);
  return { ...me, again: () => setRound((count) => count + 1) };
}

function Signed({ me, again }) {
  const route = useRoute();
  const [tenant, setTenant] = useState(tenantNow());
  const main = useRef();
  const can = (scope) => me.scopes.includes(scope);
  const screens = SCREENS.filter(({ scope }) => can(scope));
  const screen = screens.find(({ id }) => id === route.screen) ?? (route.screen === "" ? screens[0] : undefined);
  const { Shown, problem } = useScreen(screen);
  const seen = useRef(screen);
  useEffect(() => { document.title = screen ? `${screen.title} – Stentor` : "Stentor"; }, [screen]);
  useEffect(() => { // the reader of a screen reader learns that there is another screen
    if (seen.current !== screen) main.current.focus();
    seen.current = screen;
  }, [screen]);
  const change = (name) => {
    if (name === tenantNow()) return;
    chooseTenant(name);
    setTenant(name);
    go(screen?.id ?? "");
    again();
  };
  return html`<${Head} me=${me} screens=${screens} now=${screen?.id} change=${change} />
    <main id="main" tabindex="-1" ref=${main} key=${`${screen?.id} ${tenant}`}>
      ${!screen && html`<h1>Not here</h1><p>There is no such screen, or your role <strong>${me.role}</strong> may not see it.</p>`}
      <${Trouble} of=${problem} again=${() => location.reload()} />
      ${screen && !Shown && !problem && html`<${Waiting} />`}
      ${Shown && html`<${Shown} route=${route} me=${me} can=${can} tenant=${tenant} />`}
    </main>`;
}

export function App() {
  const me = useMe();
  if (me.signedOut) return html`<${SignIn} over=${me.over} />`;
  if (me.problem) return html`<main class="sign-in" id="main"><h1>Stentor</h1><${Trouble} of=${me.problem} again=${me.again} /></main>`;
  if (!me.data) return html`<${Waiting} />`;
  return html`<${Signed} me=${me.data} again=${me.again} />`;
}
