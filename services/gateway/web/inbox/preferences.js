// SPDX-License-Identifier: Apache-2.0
// <stentor-preferences>: what the recipient gets, category by channel.

import { StentorElement, h } from "./element.js";

export class StentorPreferences extends StentorElement {
  draw() {
    this.table = h("div", { part: "preferences" });
    this.live = h("p", { class: "note", part: "status", role: "status", hidden: true });
    this.root.replaceChildren(this.table, this.live);
    this.drawChoices();
  }

  attached() {
    this.load();
  }

  announce(text) {
    super.announce(text);
    this.live.hidden = text === "";
  }

  async load() {
    try {
      this.choices = (await this.session.call("GET", "/preferences")).preferences;
      this.failed = undefined;
    } catch (failure) {
      this.failed = failure;
    }
    this.drawChoices();
  }

  drawChoices() {
    if (this.failed?.status === 404) {
      this.table.replaceChildren(h("p", { class: "state", part: "state" }, this.say("noRecord")));
    } else if (this.failed) {
      this.table.replaceChildren(h("p", { class: "state", part: "state" }, this.say("failed"), " ",
        h("button", { type: "button", part: "retry", onclick: () => this.load() }, this.say("retry"))));
    } else if (!this.choices) {
      this.table.replaceChildren(h("p", { class: "state", part: "state" }, this.say("loading")));
    } else {
      this.table.replaceChildren(this.matrix());
    }
  }

  matrix() {
    const channels = [...new Set(this.choices.map((choice) => choice.channel))];
    const categories = [...new Set(this.choices.map((choice) => choice.category))];
    return h("table", { part: "table" }, h("caption", { part: "caption" }, this.say("preferences")),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, this.say("category")), ...channels.map((channel) => h("th", { scope: "col" }, this.say(channel))))),
      h("tbody", {}, ...categories.map((category) => h("tr", { part: "row" }, h("th", { scope: "row" }, this.say(category)),
        ...channels.map((channel) => h("td", {}, this.box(this.choices.find((choice) => choice.category === category && choice.channel === channel))))))));
  }

  box(choice) {
    return choice && h("input", { type: "checkbox", part: "checkbox", checked: choice.on, name: `${choice.category}.${choice.channel}`,
      "aria-label": this.say("choice", { category: this.say(choice.category), channel: this.say(choice.channel) }),
      onchange: (event) => this.store(choice, event.currentTarget) });
  }

  async store(choice, box) {
    const { category, channel } = choice;
    const on = box.checked;
    this.announce("");
    try {
      await this.session.call("PUT", "/preferences", { preferences: [{ category, channel, on }] });
      choice.on = on;
      this.announce(this.say("saved"));
      this.dispatchEvent(new CustomEvent("stentor-preference", { detail: { category, channel, on }, bubbles: true, composed: true }));
    } catch {
      box.checked = choice.on;
      this.announce(this.say("actionFailed"));
    }
  }
}
