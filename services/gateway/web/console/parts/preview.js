// SPDX-License-Identifier: Apache-2.0
// Content of a template or a mail. Two frames: /console/preview, whose policy lets nothing load, and in it a sandbox, in which nothing runs and
// which has no origin; so what the content asks for is refused, and it cannot reach the console.

import { html, useEffect, useRef } from "../html.js";

// width in pixels, else all there is. dark: as a reader who prefers dark would see it.
export function Preview({ title, content, width, height = 480, dark = false }) {
  const frame = useRef();
  const put = () => {
    const inner = frame.current?.contentDocument?.querySelector("iframe");
    if (!inner) return;
    inner.title = title;
    inner.style.colorScheme = dark ? "dark" : "light";
    inner.srcdoc = content ?? "";
  };
  useEffect(put, [content, dark]);
  return html`<iframe class="preview" ref=${frame} src="/console/preview" title=${title} onLoad=${put}
    style=${{ inlineSize: width ? `${width}px` : "100%", blockSize: `${height}px` }}></iframe>`;
}
