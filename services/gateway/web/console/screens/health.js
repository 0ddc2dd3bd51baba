// SPDX-License-Identifier: Apache-2.0
// Is it well: how fast and how deliverable, nothing lost, room and machines, what the tenant may still do.

import { html, useMemo } from "../html.js";
import { Field } from "../parts/forms.js";
import { refine } from "../router.js";
import { Audit } from "./health/audit.js";
import { Channels } from "./health/channels.js";
import { Deliverability, Slo } from "./health/figures.js";
import { Machines } from "./health/machines.js";
import { Keys, Limits, Usage } from "./health/tenant.js";

const DAY_MS = 86_400_000;
const SPANS = [{ value: "1", label: "24 hours" }, { value: "7", label: "7 days" }, { value: "30", label: "30 days" }, { value: "90", label: "90 days" }];

export default function Health({ route, me, can, tenant }) {
  const days = SPANS.some(({ value }) => value === route.query.days) ? route.query.days : "1";
  const from = useMemo(() => new Date(Date.now() - Number(days) * DAY_MS).toISOString(), [days]);
  const set = (change) => refine(route, { ...route.query, ...change });
  return html`<h1>Health</h1>
    <div class="filters"><${Field} label="Figures of the last" value=${days} choices=${SPANS} set=${(value) => set({ days: value })} />
      <p class="quiet">${me.operator && !tenant ? "All tenants together; usage, limits and keys are those of tenant platform." : html`Of tenant <strong dir="auto">${tenant || me.tenant}</strong>; streams and machines are everyone's.`}</p></div>
    <div class="columns">
      <${Audit} /><${Slo} from=${from} />
    </div>
    <${Deliverability} from=${from} by=${route.query.by === "vendor" ? "vendor" : "domain"} choose=${(by) => set({ by })} />
    ${can("tenant:read") && html`<${Channels} tenant=${tenant} can=${can} />`}
    ${can("tenant:read") && html`<div class="columns"><${Usage} from=${from} /><${Limits} /></div>`}
    ${can("keys:manage") && html`<${Keys} />`}
    <${Machines} now=${route.query.view} choose=${(view) => set({ view })} />`;
}
