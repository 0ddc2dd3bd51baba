// SPDX-License-Identifier: Apache-2.0
// CodeMirror, loaded when a template is edited. It stands in a shadow root, where its styles are adopted sheets: the page's policy allows no
// style elements.

import { html, useEffect, useRef, useState } from "../../html.js";

async function load() {
  const [commands, { html: language }, { EditorState }, view, { defaultHighlightStyle, syntaxHighlighting }] = await Promise.all([
    import("@codemirror/commands"), import("@codemirror/lang-html"), import("@codemirror/state"), import("@codemirror/view"), import("@codemirror/language")]);
  return { ...commands, ...view, language, EditorState, defaultHighlightStyle, syntaxHighlighting };
}

// `value` is what it begins with: another text is another editor (key). `set` gets what is typed. Tab leaves the editor; Ctrl+] and Ctrl+[ indent.
export function Editor({ label, value, set }) {
  const box = useRef();
  const editor = useRef();
  const latest = useRef();
  const [failed, setFailed] = useState(false);
  latest.current = { value, set };
  useEffect(() => {
    let gone = false;
    load().then((cm) => {
      if (gone) return;
      const root = box.current.shadowRoot ?? box.current.attachShadow({ mode: "open" });
      editor.current = new cm.EditorView({ root, parent: root, state: cm.EditorState.create({ doc: latest.current.value, extensions: [
        cm.lineNumbers(), cm.history(), cm.keymap.of([...cm.defaultKeymap, ...cm.historyKeymap]), cm.language(), cm.syntaxHighlighting(cm.defaultHighlightStyle),
        cm.EditorView.lineWrapping, cm.EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        cm.EditorView.theme({ "&": { maxHeight: "28rem", fontSize: "13px" }, ".cm-scroller": { overflow: "auto", minHeight: "10rem" }, ".cm-gutters": { color: "#525b69" } }),
        cm.EditorView.updateListener.of((update) => update.docChanged && latest.current.set(update.state.doc.toString()))] }) });
    }, () => setFailed(true));
    return () => { gone = true; editor.current?.destroy(); editor.current = undefined; };
  }, []);
  if (failed) return html`<textarea rows="16" aria-label=${label} spellcheck=${false} value=${value} onInput=${(event) => set(event.target.value)}></textarea>`;
  return html`<div class="editor" ref=${box}></div>`;
}
