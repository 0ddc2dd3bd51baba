// SPDX-License-Identifier: Apache-2.0
// /inbox/demo: both elements with a token from the form, or from the part of the address behind '#', which no server sees; it is taken out of the
// address at once.
import "/inbox/stentor-inbox.js";

const find = (id) => document.getElementById(id);
const given = new URLSearchParams(location.hash.slice(1)).get("token");
history.replaceState(null, "", location.pathname);

function show(token) {
  const make = (name, place, attributes) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries({ token, theme: find("theme").value, ...attributes })) element.setAttribute(key, value);
    find(place).replaceChildren(element);
  };
  find("ask").hidden = true;
  make("stentor-inbox", "bell", {});
  make("stentor-inbox", "inline", { inline: "" });
  make("stentor-preferences", "preferences", {});
}

find("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  show(find("token").value.trim());
});
find("theme").addEventListener("change", () => {
  document.documentElement.style.colorScheme = { light: "light", dark: "dark" }[find("theme").value] ?? "light dark";
  document.querySelectorAll("stentor-inbox, stentor-preferences").forEach((element) => element.setAttribute("theme", find("theme").value));
});
find("direction").addEventListener("change", () => { document.documentElement.dir = find("direction").value; });
for (const name of ["stentor-open", "stentor-count", "stentor-preference"]) {
  document.addEventListener(name, ({ detail }) => find("events").prepend(`${name} ${JSON.stringify(detail)}\n`));
}
if (given) show(given);
