// The menu above the box: whom to mention, and after a slash what the bot can be told to do.

import { avatar, el } from "./dom.js";
import { inLanguage } from "./labels.js";

export class Completion {
  // `mentions()`: who can be mentioned; `commands()`: [{word, about}], each `{en, zh}`;
  // `address()`: what must stand before a command here; `picked()` is called after a choice; `menu`:
  // the id of the list that is shown.
  constructor(box, { mentions, commands, address, picked, menu = "completion" }) {
    Object.assign(this, { box, mentions, commands, address, picked });
    this.menu = document.getElementById(menu);
    this.choices = [];
    this.chosen = 0;
    box.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== box) this.close(); }, 150));
  }

  get isOpen() { return !this.menu.hidden; }

  look() {
    const before = this.box.value.slice(0, this.box.selectionStart);
    this.choices = this.slashed(before) ?? this.mentioned(before) ?? [];
    this.chosen = 0;
    if (this.choices.length) this.draw(); else this.close();
  }

  mentioned(before) {
    const typed = /@([^\s@]*)$/.exec(before);
    if (!typed) return null;
    const start = typed[1].toLowerCase();
    return this.mentions().filter((one) => one.name.toLowerCase().startsWith(start)).map((one) => ({
      id: one.open_id, picture: avatar(one), title: one.name, about: "", typed: typed[0], text: `@${one.name} `,
    }));
  }

  slashed(before) {
    const address = this.address();
    const rest = before.toLowerCase().startsWith(address.toLowerCase()) ? before.slice(address.length) : before;
    const typed = /^\s*[/／](\S*)$/.exec(rest);
    if (!typed) return null;
    const start = `/${typed[1].toLowerCase()}`;
    return this.commands().flatMap((one) => {
      const words = [inLanguage(one.word), ...Object.values(one.word)];
      const word = words.find((each) => each.startsWith(start));
      return word ? [{ id: word, title: word, about: inLanguage(one.about), typed: before, text: `${address}${word} ` }] : [];
    });
  }

  // Whether the key was for the menu.
  key(key) {
    if (!this.isOpen) return false;
    if (key === "ArrowDown" || key === "ArrowUp") {
      const step = key === "ArrowDown" ? 1 : -1;
      this.chosen = (this.chosen + step + this.choices.length) % this.choices.length;
      this.draw();
    } else if (key === "Enter" && this.isWhole()) { this.close(); return false;
    } else if (key === "Enter" || key === "Tab") this.pick(this.choices[this.chosen]);
    else if (key === "Escape") this.close();
    else return false;
    return true;
  }

  // A command that is written out: Enter sends it.
  isWhole() {
    const choice = this.choices[this.chosen];
    return choice.title.startsWith("/") && choice.text.trim() === this.box.value.trim();
  }

  draw() {
    this.menu.replaceChildren(...this.choices.map((one, n) => el("li", {
      role: "option", id: `${this.menu.id}-${n}`, "aria-selected": String(n === this.chosen), class: n === this.chosen ? "chosen" : "",
      onmousedown: (event) => { event.preventDefault(); this.pick(one); },
    }, one.picture, el("b", {}, one.title), one.about ? el("small", {}, one.about) : null)));
    this.menu.hidden = false;
    this.box.setAttribute("aria-activedescendant", `${this.menu.id}-${this.chosen}`);
    this.menu.children[this.chosen].scrollIntoView({ block: "nearest" });
  }

  pick(one) {
    const end = this.box.selectionStart;
    const before = this.box.value.slice(0, end - one.typed.length) + one.text;
    this.box.value = before + this.box.value.slice(end);
    this.box.setSelectionRange(before.length, before.length);
    this.close();
    this.picked();
  }

  close() {
    this.menu.hidden = true;
    this.box.removeAttribute("aria-activedescendant");
  }
}
