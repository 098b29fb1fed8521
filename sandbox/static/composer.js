// The box to write in: grows with the text, sends on Enter, completes @ names.

import { avatar, el } from "./dom.js";
import { say } from "./labels.js";

export class Composer {
  // `people()` gives who can be mentioned; `send(text)` resolves when the message is sent.
  constructor(people, send) {
    this.people = people;
    this.send = send;
    this.form = document.getElementById("composer");
    this.box = document.getElementById("text");
    this.menu = document.getElementById("completion");
    this.choices = [];
    this.chosen = 0;
    this.box.addEventListener("input", () => { this.resize(); this.complete(); });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
  }

  relabel() { this.box.placeholder = say("placeholder"); }

  focus() { this.box.focus(); }

  resize() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, 160)}px`;
  }

  async submit() {
    const text = this.box.value.trim();
    if (!text) return;
    if (await this.send(text)) {
      this.box.value = "";
      this.resize();
    }
    this.close();
    this.focus();
  }

  key(event) {
    if (event.isComposing) return;
    if (!this.menu.hidden && this.menuKey(event.key)) { event.preventDefault(); return; }
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); this.submit(); }
  }

  menuKey(key) {
    if (key === "ArrowDown" || key === "ArrowUp") {
      const step = key === "ArrowDown" ? 1 : -1;
      this.chosen = (this.chosen + step + this.choices.length) % this.choices.length;
      this.draw();
      return true;
    }
    if (key === "Enter" || key === "Tab") { this.pick(this.choices[this.chosen]); return true; }
    if (key === "Escape") { this.close(); return true; }
    return false;
  }

  complete() {
    const before = this.box.value.slice(0, this.box.selectionStart);
    const typed = /@([^\s@]*)$/.exec(before);
    if (!typed) { this.close(); return; }
    const start = typed[1].toLowerCase();
    this.choices = this.people().filter((one) => one.name.toLowerCase().startsWith(start));
    this.chosen = 0;
    if (this.choices.length) this.draw(); else this.close();
  }

  draw() {
    this.menu.replaceChildren(...this.choices.map((one, n) => el("li", {
      role: "option",
      class: n === this.chosen ? "chosen" : "",
      onmousedown: (event) => { event.preventDefault(); this.pick(one); },
    }, avatar(one), one.name)));
    this.menu.hidden = false;
  }

  pick(person) {
    const end = this.box.selectionStart;
    const before = this.box.value.slice(0, end).replace(/@[^\s@]*$/, `@${person.name} `);
    this.box.value = before + this.box.value.slice(end);
    this.box.setSelectionRange(before.length, before.length);
    this.close();
    this.resize();
    this.focus();
  }

  close() { this.menu.hidden = true; }
}
