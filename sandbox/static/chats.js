// The list of chats: one stop for Tab, the arrows lead through it.

import { avatar, el } from "./dom.js";
import { locale, say } from "./labels.js";
import { redraw } from "./redraw.js";

// `entries`: [{chat, person, preview, unread, isCurrent}]; `open(chat)` is called on a click.
export function drawChats(nav, entries, open) {
  const part = (entry) => ({
    key: entry.chat.chat_id,
    state: JSON.stringify([entry, locale()]),
    make: () => button(entry, open),
  });
  const heading = (name) => ({ key: name, state: locale(), make: () => el("h2", {}, say(name)) });
  const alone = (entry) => entry.chat.mode === "p2p";
  redraw(nav, [
    heading("groups"), ...entries.filter((one) => !alone(one)).map(part),
    heading("p2p"), ...entries.filter(alone).map(part)]);
}

function button({ chat, person, preview, unread, isCurrent }, open) {
  return el("button", {
    type: "button", class: isCurrent ? "chat current" : "chat", tabindex: isCurrent ? "0" : "-1",
    "aria-current": isCurrent ? "true" : null,
    onclick: () => open(chat),
  }, avatar(person), el("span", { class: "chat-text" }, el("b", {}, chat.name), el("small", {}, preview)),
  unread ? el("span", { class: "unread" }, String(unread), el("span", { class: "unseen" }, say("unread"))) : null);
}

export function arrowsLead(nav) {
  nav.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...nav.querySelectorAll("button")];
    all[(all.indexOf(document.activeElement) + step + all.length) % all.length]?.focus();
  });
}
