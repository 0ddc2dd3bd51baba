// SPDX-License-Identifier: Apache-2.0
// How the elements look. Their custom properties and parts are in README.md.

const CSS = `
:host { display: inline-block; position: relative; color-scheme: light; font: var(--stentor-font, 0.9375rem/1.4 system-ui, sans-serif);
  --bg: var(--stentor-background, #fff); --fg: var(--stentor-text, #1a1d21); --soft: var(--stentor-muted, #59616b);
  --line: var(--stentor-border, #d5d9de); --tint: var(--stentor-unread, #eef4ff); --main: var(--stentor-accent, #0b57d0);
  --on: var(--stentor-on-accent, #fff); --bad: var(--stentor-badge, #b3261e); --round: var(--stentor-radius, 8px); }
:host([inline]), :host(stentor-preferences) { display: block; }
:host([hidden]) { display: none; }
@media (prefers-color-scheme: dark) { :host(:not([theme="light"])) { color-scheme: dark;
  --bg: var(--stentor-background, #1b1e22); --fg: var(--stentor-text, #e6e8eb); --soft: var(--stentor-muted, #a7afb9);
  --line: var(--stentor-border, #3a4048); --tint: var(--stentor-unread, #22304a); --main: var(--stentor-accent, #8ab4f8);
  --on: var(--stentor-on-accent, #10203a); --bad: var(--stentor-badge, #b3261e); } }
:host([theme="dark"]) { color-scheme: dark;
  --bg: var(--stentor-background, #1b1e22); --fg: var(--stentor-text, #e6e8eb); --soft: var(--stentor-muted, #a7afb9);
  --line: var(--stentor-border, #3a4048); --tint: var(--stentor-unread, #22304a); --main: var(--stentor-accent, #8ab4f8);
  --on: var(--stentor-on-accent, #10203a); --bad: var(--stentor-badge, #b3261e); }
* { box-sizing: border-box; }
button { font: inherit; color: inherit; background: none; border: 1px solid transparent; border-radius: var(--round); padding: .3em .6em; cursor: pointer; }
button:hover { background: var(--tint); }
button:disabled { opacity: .6; cursor: default; }
:focus-visible { outline: 2px solid var(--main); outline-offset: -2px; }
.bell { position: relative; padding: .5em; color: var(--stentor-bell, inherit); line-height: 0; }
.bell svg { inline-size: 1.5em; block-size: 1.5em; }
.badge { position: absolute; inset-block-start: 0; inset-inline-end: 0; min-inline-size: 1.5em; padding: 0 .35em; border-radius: 1em;
  background: var(--bad); color: #fff; font-size: .6875rem; font-weight: 600; line-height: 1.5; text-align: center; }
.panel { background: var(--bg); color: var(--fg); border: 1px solid var(--line); border-radius: var(--round); overflow: hidden;
  display: flex; flex-direction: column; }
:host(:not([inline])) .panel { position: absolute; inset-block-start: 100%; inset-inline-end: 0; z-index: 1000; box-shadow: 0 8px 30px #0003;
  inline-size: var(--stentor-width, min(26rem, 94vw)); max-block-size: var(--stentor-height, min(36rem, 80vh)); }
:host([inline]) .panel { max-block-size: var(--stentor-height, none); }
[hidden] { display: none !important; }
header { display: flex; align-items: center; gap: .5em; padding: .6em .8em; }
h2 { font-size: 1.0625rem; margin: 0; flex: 1; }
.tabs { display: flex; flex-wrap: wrap; border-block-end: 1px solid var(--line); padding-inline: .5em; }
.tabs button { border-radius: 0; border-block-end: 2px solid transparent; color: var(--soft); }
.tabs button[aria-selected="true"] { color: var(--fg); border-block-end-color: var(--main); font-weight: 600; }
.scroll { overflow-y: auto; overscroll-behavior: contain; min-block-size: 6rem; }
article { position: relative; display: flex; gap: .5em; padding: .7em .8em; border-block-end: 1px solid var(--line); cursor: pointer; }
article.unread { background: var(--tint); }
article .text { flex: 1; min-inline-size: 0; overflow-wrap: anywhere; }
.name { color: inherit; text-decoration: none; font-weight: 600; unicode-bidi: plaintext; display: block; }
a.name { text-decoration: underline; text-decoration-color: var(--line); text-underline-offset: .15em; }
.body { margin: .15em 0; white-space: pre-line; unicode-bidi: plaintext; }
time, .state, .hint { color: var(--soft); font-size: .8125rem; }
.actions { display: flex; flex-direction: column; align-items: flex-end; gap: .1em; }
.actions button { padding: .1em .4em; font-size: .8125rem; color: var(--main); white-space: nowrap; }
.menu { position: absolute; inset-inline-end: .8em; inset-block-start: 2.2em; z-index: 2; display: flex; flex-direction: column; background: var(--bg);
  border: 1px solid var(--line); border-radius: var(--round); box-shadow: 0 4px 16px #0003; }
.menu button { text-align: start; color: var(--fg); padding: .4em .8em; }
.state { padding: 1.5em .8em; margin: 0; text-align: center; }
.more { display: block; margin: .5em auto; color: var(--main); }
.sr { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.note { padding: .5em .8em; margin: 0; color: var(--fg); border-block-start: 1px solid var(--line); }
table { border-collapse: collapse; inline-size: 100%; background: var(--bg); color: var(--fg); }
caption { text-align: start; font-weight: 600; padding: .6em .8em; background: var(--bg); color: var(--fg); }
th, td { padding: .5em .8em; border-block-start: 1px solid var(--line); text-align: start; font-weight: normal; }
thead th { color: var(--soft); font-size: .8125rem; }
td, thead th + th { text-align: center; }
input { inline-size: 1.2em; block-size: 1.2em; accent-color: var(--main); }
@media (prefers-reduced-motion: no-preference) { button { transition: background .15s; } }
`;

let sheet;
export function styled(root) {
  if (!sheet) {
    sheet = new CSSStyleSheet(); // not <style>: a page's CSP need not allow 'unsafe-inline'
    sheet.replaceSync(CSS);
  }
  root.adoptedStyleSheets = [sheet];
  return root;
}
