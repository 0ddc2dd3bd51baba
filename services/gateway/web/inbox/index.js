// SPDX-License-Identifier: Apache-2.0
// <stentor-inbox> and <stentor-preferences>: the in-app inbox of Stentor as web components, without a framework. README.md
// says how to use them. Law: what a notification says is text, never HTML; a link opens only when it is http, https or mailto;
// no token stands in a URL.

import { safeUrl } from "./element.js";
import { StentorInbox } from "./inbox.js";
import { StentorPreferences } from "./preferences.js";

customElements.get("stentor-inbox") ?? customElements.define("stentor-inbox", StentorInbox);
customElements.get("stentor-preferences") ?? customElements.define("stentor-preferences", StentorPreferences);

export { StentorInbox, StentorPreferences, safeUrl };
