// SPDX-License-Identifier: Apache-2.0
// <stentor-inbox>: a bell with a badge and a panel, or, with `inline`, the panel alone.

import { StentorElement, bell, h, safeUrl } from "./element.js";

const PAGE = 20;
const TABS = ["all", "unread", "archived", "snoozed"];

export class StentorInbox extends StentorElement {
  tab = "all";
  items = [];
  nodes = new Map(); // id -> {node, key}

  get open() { return this.hasAttribute("inline") || (this.panel && !this.panel.hidden); }

  draw() {
    const inline = this.hasAttribute("inline");
    const button = (part, text, onclick) => h("button", { type: "button", part, onclick }, text);
    this.bell = inline ? undefined : h("button", { type: "button", class: "bell", part: "bell", "aria-haspopup": "dialog", "aria-expanded": "false",
      "aria-controls": "panel", onclick: () => this.toggle() }, bell(), this.badge = h("span", { class: "badge", part: "badge", hidden: true, "aria-hidden": "true" }));
    this.tabButtons = TABS.map((tab) => h("button", { type: "button", role: "tab", id: `tab-${tab}`, part: "tab", "aria-controls": "tabpanel",
      onclick: () => this.select(tab) }, this.say(tab)));
    this.list = h("div", { role: "feed", part: "list", "aria-label": this.say("title"), "aria-busy": "false", hidden: true });
    this.state = h("p", { class: "state", part: "state" });
    this.more = h("button", { type: "button", class: "more", part: "more", hidden: true, onclick: () => this.load(true) }, this.say("more"));
    this.live = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.scroll = h("div", { class: "scroll", role: "tabpanel", id: "tabpanel", part: "scroll", tabindex: "-1" }, this.list, this.state, this.more);
    this.panel = h("section", { class: "panel", id: "panel", part: "panel", "aria-label": this.say("title"), tabindex: "-1", hidden: !inline,
      role: inline ? "region" : "dialog", onkeydown: (event) => this.onPanelKey(event) },
    h("header", { part: "header" }, h("h2", { part: "title" }, this.say("title")), this.readAll = button("read-all", this.say("readAll"), () => this.allRead())),
    h("div", { class: "tabs", role: "tablist", part: "tabs", "aria-label": this.say("tabs"), onkeydown: (event) => this.onTabKey(event) }, ...this.tabButtons),
    this.scroll);
    this.nodes.clear();
    this.root.replaceChildren(...[this.bell, this.panel, this.live].filter(Boolean));
    this.markTab();
    this.drawCounts();
    this.drawItems();
  }

  attached(signal) {
    this.session.addEventListener("counts", () => this.onCounts(), { signal });
    this.session.addEventListener("change", () => this.onChange(), { signal });
    document.addEventListener("pointerdown", (event) => this.bell && this.open && !event.composedPath().includes(this) && this.toggle(false, false), { signal });
    const watch = new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && this.load(true), { root: this.scroll, rootMargin: "200px" });
    watch.observe(this.more);
    const clock = setInterval(() => this.open && this.drawTimes(), 60_000);
    signal.addEventListener("abort", () => { watch.disconnect(); clearInterval(clock); });
    if (this.session.counts.version >= 0) this.drawCounts();
    this.reset();
  }

  // ---- the badge and the panel ----

  onCounts() {
    this.drawCounts();
    const { unseen, unread, total, version } = this.session.counts;
    this.dispatchEvent(new CustomEvent("stentor-count", { detail: { unseen, unread, total, version }, bubbles: true, composed: true }));
  }

  drawCounts() {
    const unread = this.session?.counts.unread ?? 0;
    this.readAll.disabled = unread === 0;
    if (!this.bell) return;
    this.badge.hidden = unread === 0;
    this.badge.textContent = unread > 99 ? "99+" : String(unread);
    this.bell.setAttribute("aria-label", unread > 0 ? this.say("bellUnread", { n: unread }) : this.say("bell"));
  }

  toggle(open = !this.open, focus = true) {
    this.panel.hidden = !open;
    this.bell.setAttribute("aria-expanded", String(open));
    if (!open) {
      if (focus) this.bell.focus();
      return;
    }
    this.place();
    this.panel.focus();
    this.drawTimes();
    this.reset();
  }

  // Within what is seen of the page, wherever the bell stands.
  place() {
    this.panel.style.translate = "none";
    const { left, right } = this.panel.getBoundingClientRect();
    const over = right - document.documentElement.clientWidth + 8;
    this.panel.style.translate = `${left < 8 ? 8 - left : over > 0 ? -over : 0}px`;
  }

  onPanelKey(event) {
    if (event.key === "Escape" && this.bell) {
      event.stopPropagation();
      this.toggle(false);
    }
  }

  // ---- tabs ----

  onTabKey(event) {
    const at = TABS.indexOf(this.tab);
    const forward = this.rtl ? "ArrowLeft" : "ArrowRight";
    const back = this.rtl ? "ArrowRight" : "ArrowLeft";
    const to = { [forward]: (at + 1) % TABS.length, [back]: (at + TABS.length - 1) % TABS.length, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.select(TABS[to]);
    this.tabButtons[to].focus();
  }

  markTab() {
    this.tabButtons.forEach((button, i) => {
      button.setAttribute("aria-selected", String(TABS[i] === this.tab));
      button.tabIndex = TABS[i] === this.tab ? 0 : -1;
    });
    this.scroll.setAttribute("aria-labelledby", `tab-${this.tab}`);
  }

  select(tab) {
    if (tab === this.tab) return;
    this.tab = tab;
    this.markTab();
    this.reset();
  }

  // ---- the list ----

  reset() {
    this.items = [];
    this.next = undefined;
    this.failed = undefined;
    this.loading = undefined;
    this.drawItems();
    this.load();
  }

  async load(more = false) {
    if (!this.session || !this.open || this.loading || (more && !this.next)) return;
    const loading = this.loading = { tab: this.tab };
    this.failed = undefined;
    this.drawState();
    try {
      const page = await this.page(more ? this.next : undefined);
      if (this.loading !== loading) return; // another tab meanwhile
      this.items = more ? [...this.items, ...page.data] : page.data;
      this.next = page.next;
    } catch (failure) {
      if (this.loading !== loading) return;
      this.failed = failure;
    }
    this.loading = undefined;
    this.drawItems();
    this.noteSeen();
  }

  page(before) {
    return this.session.call("GET", `?tab=${this.tab}&limit=${PAGE}${before ? `&before=${encodeURIComponent(before)}` : ""}`);
  }

  // Something came, or changed elsewhere: the first page again, and what was loaded behind it stays.
  async onChange() {
    if (!this.open || this.loading || this.failed || this.changing) return;
    this.changing = true;
    const { tab } = this;
    try {
      const page = await this.page();
      if (tab !== this.tab || this.loading) return;
      const known = new Set(this.items.map((item) => item.id));
      const arrived = page.data.filter((item) => !known.has(item.id) && !item.read_at).length;
      const last = page.data.at(-1);
      const behind = page.next && this.items.length > page.data.length ? this.items.filter((item) => isBefore(item, last)) : [];
      this.items = [...page.data, ...behind];
      this.next = behind.length > 0 ? this.next : page.next;
      this.drawItems();
      if (arrived > 0) this.announce(this.say("arrived", { n: arrived }));
      this.noteSeen();
    } catch {
      // the next change asks again
    } finally {
      this.changing = false;
    }
  }

  noteSeen() {
    const newest = this.items[0];
    if (!newest || document.hidden || !["all", "unread"].includes(this.tab) || !this.items.some((item) => !item.seen_at)) return;
    const now = new Date().toISOString();
    this.items.forEach((item) => { item.seen_at ??= now; });
    this.session.act("/seen-all", { up_to: newest.cursor }).catch(() => {});
  }

  drawState() {
    const idle = this.items.length > 0;
    this.list.setAttribute("aria-busy", String(Boolean(this.loading)));
    this.list.hidden = !idle;
    this.more.hidden = !this.next || Boolean(this.loading);
    this.state.hidden = idle && !this.failed && !this.loading;
    if (this.failed) {
      this.state.replaceChildren(this.say("failed"), " ", h("button", { type: "button", part: "retry", onclick: () => this.load(this.items.length > 0) }, this.say("retry")));
    } else {
      this.state.replaceChildren(this.say(this.loading || !this.session ? "loading" : "empty"));
    }
  }

  // Nodes of what is shown the same stay, and with them the focus; so does one whose menu is open.
  drawItems() {
    const focused = this.root.activeElement?.closest("article")?.dataset.id;
    const keep = new Set(this.items.map((item) => item.id));
    for (const [id, { node }] of this.nodes) {
      if (!keep.has(id)) {
        node.remove();
        this.nodes.delete(id);
      }
    }
    this.items.forEach((item, i) => {
      const { title, body, data, template, locale, direction, created_at, read_at, snoozed_until } = item;
      const key = JSON.stringify([this.tab, title, body, data?.url, template, locale, direction, created_at, Boolean(read_at), snoozed_until]);
      const before = this.nodes.get(item.id);
      if (before?.key !== key && !before?.node.querySelector(".menu")) {
        before?.node.remove();
        this.nodes.set(item.id, { key, node: this.article(item) });
      }
      const { node } = this.nodes.get(item.id);
      if (this.list.children[i] !== node) this.list.insertBefore(node, this.list.children[i] ?? null);
      node.setAttribute("aria-posinset", i + 1);
      node.setAttribute("aria-setsize", this.next ? -1 : this.items.length);
    });
    if (!keep.has(this.current)) this.current = this.items[0]?.id;
    this.rove();
    if (focused && keep.has(focused) && !this.root.activeElement?.closest("article")) this.nodes.get(focused).node.focus();
    this.drawState();
  }

  article(item) {
    const unread = !item.read_at;
    const url = safeUrl(item.data?.url);
    const title = item.title || item.template;
    const name = { class: "name", part: "item-title", id: `t-${item.id}` };
    const target = this.getAttribute("target");
    return h("article", { part: unread ? "item unread" : "item", class: unread ? "unread" : undefined, "data-id": item.id, tabindex: "-1",
      "aria-labelledby": `u-${item.id} t-${item.id}`, "aria-describedby": `b-${item.id}`, lang: item.locale, dir: item.direction,
      onclick: (event) => this.onItemClick(event, item.id), onkeydown: (event) => this.onItemKey(event, item.id), onfocusin: () => this.rove(item.id) },
    h("div", { class: "text" },
      h("span", { class: "sr", id: `u-${item.id}` }, unread ? this.say("isUnread") : ""),
      url ? h("a", { ...name, href: url, target, rel: "noopener noreferrer", tabindex: "-1" }, title) : h("span", name, title),
      h("p", { class: "body", part: "item-body", id: `b-${item.id}` }, item.body ?? ""),
      h("time", { part: "item-time", datetime: item.snoozed_until ?? item.created_at, title: this.when(item.created_at) }, this.age(item))),
    h("div", { class: "actions", part: "item-actions", dir: this.rtl ? "rtl" : "ltr", lang: this.language }, ...this.actions(item)));
  }

  actions({ id, read_at }) {
    const button = (name, act) => h("button", { type: "button", part: `action ${name}`, tabindex: "-1", onclick: act }, this.say(name));
    if (this.tab === "snoozed") return [button("unsnooze", () => this.change(id, "unsnooze", { snoozed_until: undefined }))];
    if (this.tab === "archived") return [button("unarchive", () => this.change(id, "unarchive", { archived_at: undefined }))];
    const snooze = button("snooze", (event) => this.openMenu(id, event.currentTarget));
    snooze.setAttribute("aria-haspopup", "menu");
    snooze.setAttribute("aria-expanded", "false");
    const now = new Date().toISOString();
    return [
      read_at ? button("markUnread", () => this.change(id, "unread", { read_at: undefined })) : button("read", () => this.change(id, "read", { read_at: now })),
      button("archive", () => this.change(id, "archive", { archived_at: now })), snooze];
  }

  when(time) {
    return new Date(time).toLocaleString(this.language, { dateStyle: "medium", timeStyle: "short" });
  }

  age(item) {
    if (item.snoozed_until) return this.say("until", { time: this.when(item.snoozed_until) });
    const seconds = (Date.parse(item.created_at) - Date.now()) / 1000;
    const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]].find(([, each]) => Math.abs(seconds) >= each) ?? ["second", 1];
    return new Intl.RelativeTimeFormat(this.language, { numeric: "auto" }).format(Math.min(Math.round(seconds / size), 0), unit);
  }

  drawTimes() {
    for (const item of this.items) {
      const time = this.nodes.get(item.id)?.node.querySelector("time");
      if (time) time.textContent = this.age(item);
    }
  }

  // ---- the keyboard: one article at a time is in the order of Tab, with its buttons ----

  rove(id = this.current) {
    this.current = id;
    for (const [each, { node }] of this.nodes) {
      const index = each === id ? 0 : -1;
      node.tabIndex = index;
      node.querySelectorAll("a, .actions button").forEach((inner) => { inner.tabIndex = index; });
    }
  }

  indexOf(id) {
    return this.items.findIndex((item) => item.id === id);
  }

  onItemKey(event, id) {
    if (event.target.closest(".menu")) return;
    const at = this.indexOf(id);
    const to = { ArrowDown: at + 1, PageDown: at + 1, ArrowUp: at - 1, PageUp: at - 1, Home: 0, End: this.items.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      if (to >= this.items.length) this.load(true);
      this.focusItem(Math.max(0, Math.min(to, this.items.length - 1)));
    } else if (event.key === "Enter" && event.target === event.currentTarget) {
      event.preventDefault();
      this.click(id, event.currentTarget);
    }
  }

  focusItem(i) {
    const item = this.items[i];
    if (!item) {
      this.panel.focus();
      return;
    }
    this.rove(item.id);
    this.nodes.get(item.id).node.focus();
  }

  // ---- what is done with a notification ----

  onItemClick(event, id) {
    if (event.target.closest("button, .menu")) return;
    if (event.target.closest("a")) {
      if (!this.opened(id)) event.preventDefault();
    } else if (String(getSelection()) === "") {
      this.click(id, event.currentTarget);
    }
  }

  click(id, article) {
    const link = article.querySelector("a.name");
    if (link) link.click();
    else this.opened(id);
  }

  // false: the application has taken it over.
  opened(id) {
    const item = this.items[this.indexOf(id)];
    const event = new CustomEvent("stentor-open", { detail: { item: structuredClone(item) }, bubbles: true, composed: true, cancelable: true });
    const goOn = this.dispatchEvent(event);
    if (!item.clicked_at || !item.read_at) {
      const now = new Date().toISOString();
      this.change(id, "click", { clicked_at: now, read_at: item.read_at ?? now });
    }
    return goOn;
  }

  async change(id, action, changed, body) {
    const at = this.indexOf(id);
    const before = this.items[at];
    const inside = this.nodes.get(id)?.node.contains(this.root.activeElement);
    try {
      await this.session.act(`/${id}/${action}`, body);
    } catch {
      this.announce(this.say("actionFailed"));
      return;
    }
    const index = this.indexOf(id); // -1: the news of it was faster
    const now = { ...(this.items[index] ?? before), ...changed };
    const stays = this.tab === "all" ? !now.archived_at && !now.snoozed_until : this.tab === "unread" ? !now.read_at && !now.archived_at && !now.snoozed_until
      : this.tab === "archived" ? now.archived_at : now.snoozed_until;
    if (index >= 0) this.items.splice(index, 1, ...(stays ? [now] : []));
    this.drawItems();
    if (inside && !stays) this.focusItem(Math.min(at, this.items.length - 1));
    if (action !== "click") this.announce(this.say("done"));
  }

  async allRead() {
    const newest = this.items[0];
    if (!newest || this.tab === "archived" || this.tab === "snoozed") {
      this.select("all");
      return;
    }
    try {
      await this.session.act("/read-all", { up_to: newest.cursor });
      this.announce(this.say("done"));
      this.reset();
    } catch {
      this.announce(this.say("actionFailed"));
    }
  }

  // ---- snoozing ----

  openMenu(id, opener) {
    const at = (days, hour) => { const time = new Date(); time.setDate(time.getDate() + days); time.setHours(hour, 0, 0, 0); return time; };
    const choices = { hour: new Date(Date.now() + 3_600_000), tomorrow: at(1, 9), week: at((8 - new Date().getDay()) % 7 || 7, 9) };
    let closed = false; // removing it takes its focus, which closes it
    const close = (focus) => {
      if (closed) return;
      closed = true;
      menu.remove();
      opener.setAttribute("aria-expanded", "false");
      if (focus) opener.focus();
    };
    const menu = h("div", { class: "menu", part: "menu", role: "menu", "aria-label": this.say("snooze"),
      onkeydown: (event) => this.onMenuKey(event, close), onfocusout: (event) => menu.contains(event.relatedTarget) || close(false) },
    ...Object.entries(choices).map(([name, time]) => h("button", { type: "button", role: "menuitem", part: "menu-item", tabindex: "-1", title: this.when(time),
      onclick: () => { close(true); this.change(id, "snooze", { snoozed_until: time.toISOString() }, { until: time.toISOString() }); } }, this.say(name))));
    opener.setAttribute("aria-expanded", "true");
    opener.after(menu);
    menu.firstChild.focus();
  }

  onMenuKey(event, close) {
    const buttons = [...event.currentTarget.children];
    const at = buttons.indexOf(event.target);
    const to = { ArrowDown: (at + 1) % buttons.length, ArrowUp: (at + buttons.length - 1) % buttons.length, Home: 0, End: buttons.length - 1 }[event.key];
    if (to !== undefined) buttons[to].focus();
    else if (event.key === "Escape") close(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// Is `item` older in the list than `other`? By its cursor, "<microseconds>.<id>".
function isBefore(item, other) {
  const [time, id] = item.cursor.split(".");
  const [otherTime, otherId] = other.cursor.split(".");
  return Number(time) < Number(otherTime) || (time === otherTime && id < otherId);
}
