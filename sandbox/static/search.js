// Looking for words in everything that was said.

import { el } from "./dom.js";
import { momentOf, say } from "./labels.js";
import { textOf } from "./text.js";

const MOST = 50;
const AROUND = 60;
const plain = (text) => text.normalize("NFKC").toLowerCase();

export class Search {
  // `views()` gives the messages, newest first; `names(id)`, `chatName(id)`; `show(view)` leads there.
  constructor({ views, names, chatName, show }) {
    Object.assign(this, { views, names, chatName, show });
    this.panel = document.getElementById("search");
    this.box = document.getElementById("search-text");
    this.found = document.getElementById("search-found");
    this.opener = document.getElementById("show-search");
    this.opener.addEventListener("click", () => this.toggle());
    document.getElementById("hide-search").addEventListener("click", () => this.toggle(false));
    this.box.addEventListener("input", () => this.draw());
    this.panel.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); this.toggle(true); }
    });
  }

  toggle(open = this.panel.hidden) {
    this.panel.hidden = !open;
    this.opener.setAttribute("aria-expanded", String(open));
    if (open) { this.box.focus(); this.box.select(); this.draw(); } else this.opener.focus();
  }

  draw() {
    if (this.panel.hidden) return;
    const words = plain(this.box.value).split(/\s+/).filter(Boolean);
    const hits = words.length ? this.views().filter((view) => this.says(view, words)) : [];
    const count = hits.length > MOST ? `${MOST}+` : hits.length;
    document.getElementById("search-count").textContent = words.length ? say(hits.length ? "found" : "foundNothing").replace("{}", count) : say("searchHint");
    this.found.replaceChildren(...hits.slice(0, MOST).map((view) => el("li", {}, this.hit(view, words))));
  }

  says(view, words) {
    const text = plain(`${textOf(view, this.names)} ${view.sender.name}`);
    return words.every((word) => text.includes(word));
  }

  hit(view, words) {
    return el("button", { type: "button", onclick: () => this.show(view) },
      el("small", {}, `${this.chatName(view.chat_id)} · ${view.sender.name} · ${momentOf(view.create_ms)}`),
      el("span", {}, marked(around(textOf(view, this.names), words), words)));
  }

  key(event) {
    if (event.key === "Escape") { this.toggle(false); return; }
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const all = [this.box, ...this.found.querySelectorAll("button")];
    const here = all.indexOf(document.activeElement);
    if (!step || here < 0) {
      if (event.key === "Enter" && document.activeElement === this.box) all[1]?.click();
      return;
    }
    event.preventDefault();
    all[Math.max(0, Math.min(all.length - 1, here + step))].focus();
  }
}

function around(text, words) {
  const flat = text.replace(/\s+/g, " ");
  const at = Math.max(0, ...words.map((word) => flat.toLowerCase().indexOf(word)).filter((n) => n >= 0).slice(0, 1));
  const from = Math.max(0, at - AROUND / 2);
  return `${from ? "…" : ""}${flat.slice(from, from + 3 * AROUND)}`;
}

function marked(text, words) {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${escaped.join("|")})`, "i")).map((part, n) => (n % 2 ? el("mark", {}, part) : part));
}
