// SPDX-License-Identifier: Apache-2.0
// Content of a template or a mail. Two frames: /console/preview, whose policy lets nothing load, and in it a sandbox, in which nothing runs and
// which has no origin; so what the content asks for is refused, and it cannot reach the console.

import { html, useEffect, useRef } from "../html.js";

const HERE = "about:srcdoc#";
const ASKING = "link, meta[http-equiv], iframe, frame, fencedframe, object, embed, template, set, animate";
const ROUNDS = 4; // what is written out may be read as something else

const addressesOf = (element) => [...element.attributes].filter(({ localName, value }) => localName === "href" && value !== HERE);

// A link leads nowhere, and says where it would have led.
function stay(link) {
  for (const address of addressesOf(link)) {
    link.setAttribute("title", address.value);
    address.value = HERE;
  }
  link.removeAttribute("target");
}

// No policy of a document forbids a browser to look up a name or to open a connection, for <link rel=preconnect>, for a frame that it then
// refuses, or for a link that is pressed: so what is shown has none of these.
function quiet(content) {
  let text = content;
  for (let round = 0; round < ROUNDS; round++) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const asking = [...page.querySelectorAll(ASKING)];
    const links = [...page.querySelectorAll("a, area")].filter((each) => addressesOf(each).length > 0);
    if (asking.length + links.length === 0) return text;
    asking.forEach((each) => each.remove());
    links.forEach(stay);
    text = `${page.doctype ? new XMLSerializer().serializeToString(page.doctype) : ""}${page.documentElement.outerHTML}`;
  }
  return "<p>This content cannot be shown.</p>";
}

// width in pixels, else all there is. dark: as a reader who prefers dark would see it.
export function Preview({ title, content, width, height = 480, dark = false }) {
  const frame = useRef();
  const put = () => {
    const inner = frame.current?.contentDocument?.querySelector("iframe");
    if (!inner) return;
    inner.title = title;
    inner.style.colorScheme = dark ? "dark" : "light";
    inner.srcdoc = quiet(content ?? "");
  };
  useEffect(put, [content, dark]);
  return html`<iframe class="preview" ref=${frame} src="/console/preview" title=${title} onLoad=${put}
    style=${{ inlineSize: width ? `${width}px` : "100%", blockSize: `${height}px` }}></iframe>`;
}
