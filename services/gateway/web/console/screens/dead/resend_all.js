// SPDX-License-Identifier: Apache-2.0
// All letters that a filter selects, sent again: the dry run counts, and the act is bound to exactly what was counted.

import { newKey, send } from "../../api.js";
import { html, useEffect, useState } from "../../html.js";
import { Dialog } from "../../parts/forms.js";
import { Good, Trouble, Waiting, Warning } from "../../parts/notices.js";
import { number } from "../../parts/show.js";
import { useAct } from "../../use.js";
import { Flags } from "./letter.js";

const PATH = "/v1/dead-letters/resend";
const letters = (count) => `${number(count)} ${count === 1 ? "letter" : "letters"}`;

// {counted, problem, again}: of the flags as they are now.
function useCount(filter, flags) {
  const [state, setState] = useState({});
  const [round, setRound] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    setState({});
    send("POST", PATH, { filter, dry_run: true, ...flags }, { signal: leaving.signal, key: undefined }).then(
      (counted) => setState({ counted, key: newKey() }),
      (problem) => leaving.signal.aborted || setState({ problem }));
    return () => leaving.abort();
  }, [flags.may_double, flags.ignore_expiry, round]);
  return { ...state, again: () => setRound((before) => before + 1) };
}

function Counted({ of }) {
  return html`<table aria-label="Counted"><tbody>
      <tr><th scope="row">Safe: cannot have gone out</th><td class="end">${number(of.safe)}</td></tr>
      <tr><th scope="row">May double: may have gone out already</th><td class="end">${number(of.may_double)}</td></tr>
      <tr><th scope="row">Refused: stay as they are</th><td class="end">${number(of.refused)}</td></tr>
    </tbody></table>
    ${of.refusals.length > 0 && html`<ul class="quiet">${of.refusals.map(({ why, letters: count }) => html`<li key=${why} dir="auto">${number(count)}: ${why}</li>`)}</ul>`}
    ${!of.complete && html`<${Warning}>There are more letters than one call sends or reads: these are the oldest. Count again when they have gone.</>`}`;
}

export function ResendAll({ filter, close, did }) {
  const [flags, setFlags] = useState({ may_double: false, ignore_expiry: false });
  const { counted, key, problem, again } = useCount(filter, flags);
  const act = useAct(async () => {
    const done = await send("POST", PATH, { filter, dry_run: false, ...flags, until: counted.until, count: counted.count }, { key });
    did();
    return done;
  });
  const recount = () => { act.clear(); again(); };
  const change = (next) => { act.clear(); setFlags(next); };
  const changed = act.problem?.slug === "count-changed";
  const words = Object.entries(filter).map(([name, value]) => `${name.replace("_", " ")} ${value}`).join(", ");
  if (act.done) {
    return html`<${Dialog} title="Send dead letters again" close=${close}>
      <${Good}>${letters(act.done.requested)} will be sent again. Ingest does it now; each letter goes when it is done.</>
      <p class="acts"><button type="button" class="main" onClick=${close}>Close</button></p></>`;
  }
  return html`<${Dialog} title="Send dead letters again" close=${close}>
    <p dir="auto">${words ? html`Of the letters with <strong>${words}</strong>:` : "Of all dead letters of this tenant:"}</p>
    <${Trouble} of=${problem} again=${again} />
    ${!counted && !problem && html`<${Waiting} what="Counting" />`}
    ${counted && html`<${Counted} of=${counted} />`}
    <${Flags} of=${flags} set=${change} />
    ${changed ? html`<${Warning}><p><strong>Nothing was sent.</strong> Letters came or went since they were counted: <span dir="auto">${act.problem.message}</span></p></>`
      : html`<${Trouble} of=${act.problem} />`}
    <p class="acts">
      ${counted && !changed && counted.count > 0 && html`<button type="button" class="main" disabled=${act.running} onClick=${() => act.run()}>
        ${act.running ? "Working …" : `Send ${letters(counted.count)} again`}</button>`}
      ${counted && counted.count === 0 && html`<span>None of them can be sent again so.</span>`}
      ${(changed || counted) && html`<button type="button" class=${changed ? "main" : ""} disabled=${act.running} onClick=${recount}>Count again</button>`}
      <button type="button" onClick=${close}>Cancel</button></p>
  </>`;
}
