// SPDX-License-Identifier: Apache-2.0
// Lines over time, by uPlot, which is loaded with the first chart.

import { html, useEffect, useRef } from "../html.js";

// series: [{label, values}], times in seconds since 1970. The same numbers stand in a table beside it, or in `label`: a canvas has no words.
export function Chart({ label, times, series, height = 140 }) {
  const box = useRef();
  const plot = useRef();
  const latest = useRef();
  latest.current = [times, ...series.map((each) => each.values)];
  useEffect(() => {
    let gone = false;
    import("uplot").then(({ default: Plot }) => {
      if (gone || !box.current) return; // left meanwhile
      // A canvas knows no variables of CSS: the colours are those of the caption.
      const caption = box.current.nextElementSibling;
      const keys = [...caption.querySelectorAll(".key")].map((key) => getComputedStyle(key).backgroundColor);
      const edge = { stroke: getComputedStyle(box.current).borderTopColor };
      const axis = { stroke: getComputedStyle(caption).color, grid: edge, ticks: edge };
      plot.current = new Plot({
        width: box.current.clientWidth, height, cursor: { show: false }, legend: { show: false },
        scales: { y: { range: (_, low, high) => [Math.min(0, low), Math.max(1, high * 1.1)] } },
        series: [{}, ...series.map((each, index) => ({ label: each.label, stroke: keys[index], width: 1.5 }))],
        axes: [{ ...axis }, { ...axis, size: 56 }],
      }, latest.current, box.current);
    });
    const resize = new ResizeObserver(() => box.current && plot.current?.setSize({ width: box.current.clientWidth, height }));
    resize.observe(box.current);
    return () => { gone = true; resize.disconnect(); plot.current?.destroy(); plot.current = undefined; };
  }, [series.map((each) => each.label).join()]);
  useEffect(() => plot.current?.setData(latest.current));
  return html`<figure class="chart">
    <div ref=${box} role="img" aria-label=${label}></div>
    <figcaption>${series.map((each, index) => html`<span key=${each.label}><i class=${`key line-${index + 1}`}></i>${each.label}</span>`)}</figcaption>
  </figure>`;
}
