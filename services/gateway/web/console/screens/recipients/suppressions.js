// SPDX-License-Identifier: Apache-2.0
// Suppressions in force of a recipient's addresses, of the tenant's own list, with their cause and their release.

import { at, get, send } from "../../api.js";
import { html, useEffect, useState } from "../../html.js";
import { Confirm } from "../../parts/forms.js";
import { Empty, Trouble, Waiting } from "../../parts/notices.js";
import { Facts, Reason, When } from "../../parts/show.js";
import { Who } from "../../parts/who.js";
import { Link } from "../../router.js";
import { useAct } from "../../use.js";

const BOUND = ["complaint", "compliance"]; // releasing them needs a scope of its own
export const mayRelease = (can, { reason }) => can("suppressions:write") && (!BOUND.includes(reason) || can("suppressions:release"));

async function read(addresses, signal) {
  const found = [];
  for (const { channel, address_hash: hash } of addresses) { // one after the other: the API reads few lists at once
    if (hash) found.push(...(await get("/v1/suppressions", { channel, address_hash: hash }, { signal })).data);
  }
  return found;
}

function useSuppressions(addresses) {
  const [state, setState] = useState({ waiting: true });
  const [round, setRound] = useState(0);
  const hashes = addresses.map(({ address_hash: hash }) => hash).join();
  useEffect(() => {
    const leaving = new AbortController();
    read(addresses, leaving.signal).then((rows) => setState({ rows }), (problem) => leaving.signal.aborted || setState({ problem }));
    return () => leaving.abort();
  }, [hashes, round]);
  return { ...state, again: () => setRound((count) => count + 1) };
}

export function Release({ of, close, again }) {
  const act = useAct(async () => { await send("POST", at`/v1/suppressions/${of.id}/release`); again(); return true; });
  return html`<${Confirm} title="Release this suppression?" yes="Release this one" act=${act} close=${close}>
    <p>${of.category ?? "Every category"} by ${of.channel} can go to <bdi>${of.address}</bdi> again. The reason was: <${Reason} of=${of.reason} />.</p></>`;
}

export function Suppressions({ addresses, can }) {
  const { rows, problem, waiting, again } = useSuppressions(addresses);
  const [releasing, setReleasing] = useState();
  return html`<div class="panel" data-part="suppressions"><h2>Suppressions in force</h2>
    <${Trouble} of=${problem} again=${again} />
    ${waiting && html`<${Waiting} />`}
    ${rows?.length === 0 && html`<${Empty}>None: of the tenant's own list, no address is suppressed.</>`}
    ${rows?.map((row) => html`<div class="entry" key=${row.id}>
      <p><strong><${Reason} of=${row.reason} /></strong> of <bdi>${row.address}</bdi> (${row.channel}), for ${row.category ?? "every category"}</p>
      <${Facts} of=${{
        "Since": row.created_at && html`<${When} at=${row.created_at} />`, "Until": row.expires_at && html`<${When} at=${row.expires_at} />`, "By": row.created_by && html`<${Who} of=${row.created_by} />`, "Note": row.note,
        "Because of": row.source_notification_id && html`<${Link} to="find" parts=${[row.source_notification_id]} class="mono">${row.source_notification_id}</>`, "Entry": html`<code>${row.id}</code>` }} />
      ${mayRelease(can, row) && html`<p class="acts"><button type="button" onClick=${() => setReleasing(row)}>Release it</button></p>`}
    </div>`)}
    ${releasing && html`<${Release} of=${releasing} close=${() => setReleasing(undefined)} again=${again} />`}
  </div>`;
}
