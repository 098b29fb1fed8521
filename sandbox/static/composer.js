// The box to write in: grows with the text, sends on Enter, holds pasted files until then.

import { el, icon } from "./dom.js";
import { Completion } from "./completion.js";
import { say } from "./labels.js";

export class Composer {
  // `send(text, files, aloud)` resolves to what is true when all of it is sent; `attach(files)` sends now;
  // `changed(text)` is told of drafts; `cancel()` ends a reply or an edit. The rest: see Completion.
  constructor({ send, attach, changed, cancel, ...completing }) {
    Object.assign(this, { send, changed, cancel });
    this.box = document.getElementById("text");
    this.tray = document.getElementById("tray");
    this.files = [];
    this.completion = new Completion(this.box, { ...completing, picked: () => { this.typed(); this.focus(); } });
    this.box.addEventListener("input", () => { this.typed(); this.completion.look(); });
    this.box.addEventListener("keydown", (event) => this.key(event));
    const form = document.getElementById("composer");
    form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    this.box.addEventListener("paste", (event) => this.take(event, event.clipboardData));
    const chat = document.getElementById("chat");
    chat.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); });
    chat.addEventListener("drop", (event) => this.take(event, event.dataTransfer));
    this.listenToFiles(attach);
    const speak = document.getElementById("speak");
    speak.append(icon("voice"));
    speak.addEventListener("click", () => this.submit(true));
  }

  listenToFiles(attach) {
    const input = document.getElementById("file");
    const button = document.getElementById("attach");
    button.append(icon("attach"));
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", async () => {
      const chosen = [...input.files];
      input.value = "";
      if (chosen.length) await attach(chosen);
    });
  }

  relabel() { this.box.placeholder = say("placeholder"); this.drawTray(); }

  focus() { this.box.focus(); }

  get text() { return this.box.value; }

  set text(value) {
    this.box.value = value;
    this.resize();
  }

  typed() {
    this.resize();
    this.changed(this.box.value);
  }

  resize() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, 160)}px`;
  }

  take(event, carried) {
    const files = [...(carried?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    this.files.push(...files);
    this.drawTray();
    this.focus();
  }

  drawTray() {
    this.tray.replaceChildren(...this.files.map((file) => el("li", {}, icon("file"), file.name,
      el("button", {
        type: "button", class: "quiet", "aria-label": `${say("remove")} ${file.name}`,
        onclick: () => { this.files = this.files.filter((one) => one !== file); this.drawTray(); this.focus(); },
      }, "✕"))));
    this.tray.hidden = !this.files.length;
  }

  async submit(aloud = false) {
    const text = this.box.value.trim();
    if (this.sending || (!text && !this.files.length)) return;
    this.sending = true;
    const written = this.box.value;
    this.completion.close();
    try {
      const left = await this.send(text, this.files, aloud);
      this.files = left.files;
      this.drawTray();
      if (left.isSent && this.box.value === written) { this.text = ""; this.changed(""); }
    } finally {
      this.sending = false;
    }
    this.focus();
  }

  key(event) {
    if (event.isComposing) return;
    if (this.completion.key(event.key)) { event.preventDefault(); return; }
    if (event.key === "Escape") this.cancel();
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); this.submit(); }
  }
}
