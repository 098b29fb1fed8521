// The messages of a chat: their order, days and threads, and what of them is in sight.

import { el, icon } from "./dom.js";
import { dayOf, locale, say } from "./labels.js";
import { message, redrawMessage } from "./message.js";
import { redraw } from "./redraw.js";
import { preview } from "./text.js";

const END = "end";
const NEAR_PX = 60;
const GAP_PX = 12;
const LATER_TOOL = ".toolbar > button:not(:first-child)"; // a toolbar is one stop; arrows lead along it
const CONTROLS = "a[href], button, summary, [tabindex]";

const serials = new WeakMap();
let serial = 0;
function serialOf(view) {
  if (!serials.has(view)) serials.set(view, ++serial);
  return serials.get(view);
}

export class Timeline {
  // `context` is that of message(), plus find(id) → view, epoch() → what names were drawn from.
  constructor(context) {
    this.context = context;
    this.box = document.getElementById("messages");
    this.list = document.getElementById("message-list");
    this.button = document.getElementById("newest");
    this.views = [];
    this.following = END; // what is kept in sight: the end, a thread (its root's id), or nothing
    this.top = 0;
    this.unseen = new Set();
    this.awaited = new Set(); // sent from here, to be brought into sight when it arrives
    this.current = null;
    this.box.addEventListener("scroll", () => this.scrolled());
    this.button.addEventListener("click", () => this.toNewest());
    this.list.addEventListener("focusin", (event) => this.enter(event.target.closest(".message")));
    this.list.addEventListener("keydown", (event) => this.key(event));
    const grown = new ResizeObserver(() => this.keep());
    grown.observe(this.list);
    grown.observe(this.box);
  }

  // Another chat: from its end.
  open(views) {
    this.following = END;
    this.unseen.clear();
    this.current = null;
    this.draw(views);
  }

  // `views` in order; `arrived`: ids of those that are new.
  draw(views, arrived = []) {
    this.views = views;
    const replies = new Map();
    const ids = new Set(views.map((one) => one.message_id));
    const isReply = (one) => one.thread_id && ids.has(one.root_id);
    for (const one of views) if (isReply(one)) replies.set(one.root_id, [...(replies.get(one.root_id) ?? []), one]);
    const roots = views.filter((one) => !isReply(one));
    const parts = withDays(roots, "", (one) => this.block(one, replies.get(one.message_id) ?? []));
    if (!roots.length) parts.push({ key: "empty", state: locale(), make: () => el("p", { class: "empty" }, say("nothing")) });
    redraw(this.list, parts);
    for (const id of [...this.awaited]) this.reveal(id);
    this.keep();
    for (const id of arrived) if (!this.isInSight(this.node(id))) this.unseen.add(id);
    this.mark();
    if (!this.list.contains(document.activeElement)) this.current = null;
    this.reach();
  }

  block(root, replies) {
    const parts = [this.part(root)];
    const parent = this.context.find(root.parent_id);
    if (parent) {
      parts.unshift({
        key: "quoted", state: `${serialOf(parent)} ${this.context.epoch()} ${locale()}`,
        make: () => el("button", { type: "button", class: "quoted", tabindex: "-1", onclick: () => this.show(root.parent_id) },
          `${parent.sender.name}: ${preview(parent, this.context.names)}`),
      });
    }
    if (root.thread_id) parts.push({ key: "thread", make: () => el("div", { class: "thread" }), fill: (node) => this.thread(node, root, replies) });
    return { key: `block ${root.message_id}`, make: () => el("div", { class: "block" }), fill: (node) => redraw(node, parts) };
  }

  thread(node, root, replies) {
    redraw(node, [...withDays(replies, dayOf(root.create_ms), (one) => this.part(one)), {
      key: "reply", state: locale(),
      make: () => el("button", { type: "button", class: "thread-reply", tabindex: "-1", onclick: () => this.context.replyTo(root) },
        icon("reply"), say("replyInThread")),
    }]);
  }

  part(view) {
    const around = `${this.context.speaker()} ${this.context.epoch()} ${locale()}`;
    const make = () => Object.assign(message(view, this.context), { serial: serialOf(view) });
    if (!view.card) return { key: view.message_id, state: `${serialOf(view)} ${around}`, make };
    const state = `card ${JSON.stringify(view.reactions)} ${around}`;
    return { key: view.message_id, state, make, fill: (node) => this.newer(node, view) };
  }

  newer(node, view) {
    if (node.serial === serialOf(view)) return;
    redrawMessage(node, view, this.context);
    Object.assign(node, { serial: serialOf(view), isReached: null });
  }

  node(id) { return this.list.querySelector(`.message[data-id="${CSS.escape(id)}"]`); }

  // Brings what was sent from here into sight, now or when it arrives, and stays with it.
  reveal(id) {
    this.awaited.add(id);
    const node = this.node(id);
    if (!node) return;
    this.awaited.delete(id);
    const last = [...this.list.querySelectorAll(":scope > .block")].at(-1);
    const view = this.context.find(id);
    this.following = last?.contains(node) ? END : view.root_id || id;
    this.keep();
    this.mark();
  }

  // The message that is quoted.
  show(id) {
    const node = this.node(id);
    if (!node) return;
    this.following = null;
    node.scrollIntoView({ block: "center" });
    this.enter(node);
    node.focus({ preventScroll: true });
    node.classList.add("found");
    setTimeout(() => node.classList.remove("found"), 2000);
  }

  // To the end first; then, one press each, to the threads above that go on.
  toNewest() {
    const above = [...this.unseen].filter((id) => this.threadAbove(id));
    this.following = above.length && above.length === this.unseen.size ? this.threadAbove(above.at(-1)) : END;
    this.unseen = new Set(above.filter((id) => this.threadAbove(id) !== this.following));
    this.keep();
    this.mark();
    document.getElementById("text").focus();
  }

  // The root of the thread in which a reply stands, if others come after it and it is not new itself.
  threadAbove(id) {
    const block = this.node(id)?.closest(".thread")?.closest(".block");
    const root = block?.nextElementSibling && block.querySelector(".message").dataset.id;
    return root && !this.unseen.has(root) ? root : null;
  }

  followed() {
    if (this.following === END) return null;
    const last = this.views.filter((one) => [one.root_id, one.message_id].includes(this.following)).at(-1);
    return last ? this.node(last.message_id) : null;
  }

  keep() {
    if (!this.following) return;
    const target = this.followed();
    if (!target) this.box.scrollTop = this.box.scrollHeight;
    else if (!this.isInSight(target)) {
      this.box.scrollTop += target.getBoundingClientRect().bottom - this.box.getBoundingClientRect().bottom + GAP_PX;
    }
  }

  // Whoever scrolls up leaves the end; what grows below, like a picture that arrives, does not.
  scrolled() {
    const isUpwards = this.box.scrollTop < this.top;
    this.top = this.box.scrollTop;
    if (this.fromEnd() < NEAR_PX) this.following = END;
    else if (this.following === END ? isUpwards : !this.isInSight(this.followed())) this.following = null;
    this.mark();
  }

  fromEnd() { return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight; }

  isInSight(node) {
    if (!node) return true;
    const [its, box] = [node.getBoundingClientRect(), this.box.getBoundingClientRect()];
    return its.bottom > box.top && its.bottom <= box.bottom + GAP_PX / 2;
  }

  // The button that leads to what is out of sight.
  mark() {
    for (const id of this.unseen) if (this.isInSight(this.node(id))) this.unseen.delete(id);
    const count = this.unseen.size;
    this.button.hidden = !count && this.fromEnd() < this.box.clientHeight;
    this.button.classList.toggle("counted", count > 0);
    const words = count === 1 ? say("oneNew") : count ? say("manyNew").replace("{}", count) : say("toNewest");
    if (this.button.textContent !== words) this.button.replaceChildren(icon("down"), words);
  }

  enter(node) {
    if (!node || node.dataset.id === this.current) return;
    this.current = node.dataset.id;
    this.reach();
  }

  // One message is reached with Tab, and what can be done with it; the arrows lead to the others.
  reach() {
    const nodes = [...this.list.querySelectorAll(".message")];
    const chosen = nodes.find((one) => one.dataset.id === this.current) ?? nodes.at(-1);
    for (const node of nodes) {
      const on = node === chosen;
      if (node.isReached === on) continue;
      node.isReached = on;
      node.tabIndex = on ? 0 : -1;
      for (const control of node.querySelectorAll(CONTROLS)) control.tabIndex = on && !control.matches(LATER_TOOL) ? 0 : -1;
    }
  }

  key(event) {
    const here = event.target.closest(".message");
    const steps = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") document.getElementById("text").focus();
    if (event.target.matches(".toolbar > button")) {
      if (event.key === "ArrowRight") event.target.nextElementSibling?.focus();
      if (event.key === "ArrowLeft") event.target.previousElementSibling?.focus();
    }
    if (!here || !(event.key in steps)) return;
    event.preventDefault();
    const nodes = [...this.list.querySelectorAll(".message")];
    const wanted = Math.max(0, Math.min(nodes.length - 1, nodes.indexOf(here) + steps[event.key]));
    nodes[wanted].focus();
  }
}

function withDays(list, from, part) {
  let day = from;
  return list.flatMap((one) => {
    const before = day;
    day = dayOf(one.create_ms);
    if (day === before) return [part(one)];
    return [{ key: `day ${day} ${one.message_id}`, state: day, make: () => el("p", { class: "day" }, el("span", {}, day)) }, part(one)];
  });
}
