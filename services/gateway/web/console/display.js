// SPDX-License-Identifier: Apache-2.0
// Colours and direction, as this browser's user chose them.

import { useEffect, useState } from "./html.js";

const STORED = "stentor.display";

function stored() {
  try {
    return { theme: "system", dir: "ltr", ...JSON.parse(localStorage.getItem(STORED)) };
  } catch {
    return { theme: "system", dir: "ltr" };
  }
}

export function useDisplay() {
  const [display, setDisplay] = useState(stored);
  useEffect(() => {
    const root = document.documentElement;
    root.dir = display.dir === "rtl" ? "rtl" : "ltr";
    if (["light", "dark"].includes(display.theme)) root.dataset.theme = display.theme;
    else delete root.dataset.theme;
  }, [display]);
  return [display, (change) => {
    const next = { ...display, ...change };
    localStorage.setItem(STORED, JSON.stringify(next));
    setDisplay(next);
  }];
}
