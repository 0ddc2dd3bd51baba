// SPDX-License-Identifier: Apache-2.0
// What every module draws with: htm's templates, which turn every value into text or an attribute and never into HTML.

import htm from "htm";
import { h } from "preact";

export { createContext, Fragment, render } from "preact";
export * from "preact/hooks";
export const html = htm.bind(h);
