// SPDX-License-Identifier: Apache-2.0
// A table of any length: only the rows that are seen are in the document, and the pages behind are asked for as they are neared.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { Empty, Trouble, Waiting } from "./notices.js";

const ROW = 36;    // px: console.css gives each row of .rows this height
const AROUND = 12; // rows above and below those that are seen
const SHORT = 60;  // rows up to which all are there

// columns: [{name, show: (row) => ..., end: true for numbers, wide: true}]. list: of usePages(), or {rows}. `open(row)` on a click or Enter; the
// row `chosen(row)` is marked. The arrow keys, Home and End move between rows.
export function Table({ label, columns, list, id, open, chosen, empty = "There is nothing here.", what }) {
  const box = useRef();
  const [view, setView] = useState({ top: 0, height: 600 });
  const [at, setAt] = useState(0);
  const [moved, setMoved] = useState(false);
  const { rows } = list;
  const all = rows.length <= SHORT;
  const first = all ? 0 : Math.max(0, Math.floor(view.top / ROW) - AROUND);
  const last = all ? rows.length : Math.min(rows.length, Math.ceil((view.top + view.height) / ROW) + AROUND);
  const look = () => setView({ top: box.current.scrollTop, height: box.current.clientHeight });

  useLayoutEffect(() => { if (box.current) look(); }, [rows.length > 0]);
  useEffect(() => { if (list.next && last >= rows.length - AROUND && !list.problem) list.more(); }, [last, rows.length, list.next, list.waiting]);
  useLayoutEffect(() => {
    if (moved) box.current?.querySelector(`[data-row="${at}"]`)?.focus();
  }, [at, moved, first]);

  const move = (event) => {
    const by = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + 15, PageUp: at - 15 }[event.key];
    if (event.key === "Enter" && open && event.target.dataset.row !== undefined) open(rows[at]);
    if (by === undefined || event.target.dataset.row === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(rows.length - 1, by));
    const top = next * ROW;
    if (!all && (top < box.current.scrollTop || top + 2 * ROW > box.current.scrollTop + box.current.clientHeight)) box.current.scrollTop = top - ROW * 2;
    look();
    setAt(next);
    setMoved(true);
  };
  if (rows.length === 0) {
    return html`<${Trouble} of=${list.problem} again=${list.again} />${list.waiting ? html`<${Waiting} what=${what} />` : !list.problem && html`<${Empty}>${empty}</>`}`;
  }
  return html`<div class="table" ref=${box} onScroll=${all ? undefined : look} role="region" aria-label=${label} tabindex=${open ? undefined : 0}>
    <table aria-rowcount=${list.next ? -1 : rows.length + 1} aria-label=${label}>
      <thead><tr aria-rowindex="1">${columns.map((column) => html`<th key=${column.name} scope="col" class=${column.end ? "end" : ""}>${column.name}</th>`)}</tr></thead>
      <tbody class="rows" onKeyDown=${move}>
        ${first > 0 && html`<tr key="above" aria-hidden="true"><td class="gap" style=${{ height: `${first * ROW}px` }} colspan=${columns.length}></td></tr>`}
        ${rows.slice(first, last).map((row, index) => {
          const place = first + index;
          return html`<tr key=${id(row)} aria-rowindex=${place + 2} data-row=${place} class=${open ? "opens" : ""}
            aria-current=${chosen?.(row) ? "true" : undefined} tabindex=${open ? (place === Math.min(at, rows.length - 1) ? 0 : -1) : undefined}
            onClick=${open && (() => { setAt(place); setMoved(false); open(row); })} onFocus=${() => setAt(place)}>
            ${columns.map((column) => html`<td key=${column.name} class=${`${column.end ? "end" : ""} ${column.wide ? "wide" : ""}`} dir="auto">${column.show(row)}</td>`)}
          </tr>`;
        })}
        ${last < rows.length && html`<tr key="below" aria-hidden="true"><td class="gap" style=${{ height: `${(rows.length - last) * ROW}px` }} colspan=${columns.length}></td></tr>`}
      </tbody>
    </table>
  </div>
  <${Trouble} of=${list.problem} again=${list.more ?? list.again} />
  <p class="quiet" role="status">${list.waiting ? "Loading more …" : `${rows.length.toLocaleString()} ${list.next ? "so far; scroll for more" : rows.length === 1 ? "row" : "rows"}`}</p>`;
}
