// SPDX-License-Identifier: Apache-2.0
// One notification: the answer first, then what it is known from. It follows what happens to it.

import { at } from "../../api.js";
import { html, useEffect, useRef } from "../../html.js";
import { Answer, Trouble, Waiting } from "../../parts/notices.js";
import { Facts, toneOf, Pill, Reason, When } from "../../parts/show.js";
import { Why } from "../../parts/why.js";
import { Link } from "../../router.js";
import { useAnswer, useStream } from "../../use.js";
import { Acts } from "./acts.js";
import { Attempts, Timeline } from "./steps.js";

const AFTER_MS = [300, 1_500, 4_000]; // history is written behind the stream

function useNotification(id) {
  const one = useAnswer(at`/v1/notifications/${id}`, { include: "timeline,attempts" });
  const why = useAnswer(at`/v1/notifications/${id}/why`);
  const timers = useRef([]);
  const again = () => { one.again(); why.again(); };
  const soon = () => {
    timers.current.forEach(clearTimeout);
    timers.current = AFTER_MS.map((ms) => setTimeout(again, ms));
  };
  const stream = useStream("/v1/live/status", { notification_id: id }, ({ event }) => (event === "status" || event === "reset") && soon());
  useEffect(() => () => timers.current.forEach(clearTimeout), []);
  return { one, why, soon, again, stream };
}

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
// A notification's trace is named by its ULID, unless its caller brought a trace (common/trace).
export const traceOf = (id) => [...id.slice(-26)].reduce((value, sign) => value * 32n + BigInt(ALPHABET.indexOf(sign)), 0n).toString(16).padStart(32, "0");

const time = (value) => value && html`<${When} at=${value} />`;

function About({ of }) {
  return html`<${Facts} of=${{
    "Template": of.template && html`<${Link} to="templates" parts=${[of.template]}>${of.template}</> ${of.template_version}`,
    "Channel": of.channel, "Category": of.category, "Priority": of.priority,
    "Recipient": of.recipient_id && html`<${Link} to="recipients" parts=${[of.recipient_id]} class="mono">${of.recipient_id}</>`,
    "Correlation": of.correlation_id && html`<${Link} to="find" query=${{ q: of.correlation_id, as: "correlation_id" }}>${of.correlation_id}</>`,
    "Batch": of.batch_id && html`<${Link} to="batches" parts=${[of.batch_id]} class="mono">${of.batch_id}</>`,
    "Accepted": time(of.created_at), "Scheduled for": time(of.scheduled_for), "Reason": of.reason_code && html`<${Reason} of=${of.reason_code} />` }} />`;
}

// The one sentence that the reader came for.
function Sentence({ status, why }) {
  return html`<div class=${`answer ${toneOf(status)}`} aria-live="polite">
    ${why.data ? html`<p><strong dir="auto">${why.data.summary}</strong></p>` : why.waiting && html`<${Waiting} what="Asking every stage why" />`}
    <${Trouble} of=${why.problem} again=${why.again} />
  </div>`;
}

export function Notification({ id, can, searched }) {
  const { one, why, soon, again, stream } = useNotification(id);
  const heading = useRef();
  useEffect(() => { // where the list it was opened from is not seen any more
    if (document.activeElement === document.body || !document.activeElement.offsetParent) heading.current?.focus();
  }, []);
  return html`<article class="panel notification" aria-labelledby="notification">
    <h2 id="notification" tabindex="-1" ref=${heading}>${one.data && html`<${Pill} state=${one.data.status} />`} Notification <span class="mono">${id}</span></h2>
    <${Answer} of=${one} what="Reading its history">${(data) => html`
      <${Sentence} status=${data.status} why=${why} />
      ${data.waiting && html`<p class="notice warn"><bdi>${data.waiting.for}</bdi> cannot be reached since <${When} at=${data.waiting.since} />.</p>`}
      ${stream === "lost" && html`<p class="quiet" role="status">The stream was lost: what happens to it is shown when it is back.</p>`}
      <${Acts} of=${data} why=${why.data} can=${can} soon=${soon} searched=${searched} />
      <${About} of=${data} />
      ${why.data && html`<h3>Why</h3><${Why} of=${why.data.why} />`}
      <${Timeline} of=${data} />
      <${Attempts} of=${data} />
      <p class="acts quiet"><button type="button" onClick=${again}>Look again</button>
        <span>Its trace, if its caller brought none: <code>${traceOf(id)}</code></span></p>`}</>
  </article>`;
}
