// The comments of one document: what is selected in its text is what a comment is about.

import { get, post } from "./api.js";
import { Completion } from "./completion.js";
import { attempt } from "./deeds.js";
import { el } from "./dom.js";
import { say } from "./labels.js";

const byId = (id) => document.getElementById(id);
const EVERY_MS = 1000;

export class Comments {
  // `people()`: who can be mentioned, bots too; `closed()` is called when the list is wanted again.
  constructor({ people, closed }) {
    this.token = "";
    this.thread = "";
    this.people = people;
    this.box = byId("comment-text");
    this.completion = new Completion(this.box, {
      mentions: people, commands: () => [], address: () => "", picked: () => this.box.focus(), menu: "comment-completion",
    });
    this.box.addEventListener("input", () => this.completion.look());
    this.box.addEventListener("keydown", (event) => this.key(event));
    byId("comment-form").addEventListener("submit", (event) => { event.preventDefault(); attempt(() => this.send()); });
    byId("comment-page").addEventListener("mouseup", () => this.select());
    byId("comment-whole").addEventListener("click", () => this.about("", ""));
    byId("comment-back").addEventListener("click", () => { this.close(); closed(); });
  }

  async open(token) {
    this.token = token;
    const writers = this.people().filter((one) => one.kind === "user");
    byId("comment-as").replaceChildren(...writers.map((one) => el("option", { value: one.open_id }, one.name)));
    byId("comments").hidden = false;
    this.about("", "");
    await this.draw();
    this.timer = setInterval(() => this.draw(), EVERY_MS);
  }

  close() {
    clearInterval(this.timer);
    byId("comments").hidden = true;
    this.token = "";
  }

  async draw() {
    const { items } = await get("documents");
    const one = items.find((each) => each.token === this.token);
    if (!one) return;
    byId("comment-title").textContent = one.title;
    if (byId("comment-page").textContent !== one.text) byId("comment-page").textContent = one.text;
    const shown = JSON.stringify(one.comments);
    if (shown === this.shown) return;
    this.shown = shown;
    byId("comment-threads").replaceChildren(...one.comments.map((each) => this.row(each)));
  }

  row(comment) {
    const replies = comment.replies.map((one) => el("p", { class: "comment-reply" }, el("b", {}, one.author), " ", one.text));
    return el("div", { class: comment.is_solved ? "comment solved" : "comment" },
      comment.quote ? el("blockquote", {}, comment.quote) : el("small", { class: "hint" }, say("onAll")), replies,
      el("div", { class: "row" },
        el("button", { type: "button", class: "secondary", onclick: () => this.about("", comment.comment_id) }, say("replyHere")),
        el("button", { type: "button", class: "secondary", onclick: () => attempt(() => this.solve(comment)) }, say(comment.is_solved ? "reopen" : "solve"))));
  }

  async solve(comment) {
    await post("documents/solve", { token: this.token, comment_id: comment.comment_id, solved: !comment.is_solved });
    await this.draw();
  }

  select() {
    const quote = String(document.getSelection()).trim();
    if (quote) this.about(quote, "");
  }

  about(quote, thread) {
    Object.assign(this, { quote, thread });
    byId("comment-about").textContent = thread ? say("inThread") : quote ? `“${quote}”` : say("onAll");
    document.getSelection().removeAllRanges();  // else what is typed goes there
    this.box.focus();
    this.box.setSelectionRange(this.box.value.length, this.box.value.length);
  }

  key(event) {
    if (event.isComposing) return;
    if (this.completion.key(event.key)) { event.preventDefault(); return; }
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); attempt(() => this.send()); }
  }

  async send() {
    const text = this.box.value.trim();
    if (!text) return;
    const where = this.thread ? { comment_id: this.thread } : { quote: this.quote };
    await post("documents/comment", { as: byId("comment-as").value, token: this.token, text, ...where });
    this.box.value = "";
    await this.draw();
  }
}
