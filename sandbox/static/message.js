// One message: bubble or card, sender, time, reactions, what can be done with it.

import { card, redrawCard } from "./card.js";
import { avatar, el, icon, link } from "./dom.js";
import { momentOf, say, timeOf } from "./labels.js";
import { at, markdown, picture } from "./markdown.js";

const EMOJI = { THUMBSUP: "👍", ThumbsDown: "👎", Typing: "⌨️", OK: "👌", SMILE: "😊", HEART: "❤️", DONE: "✅", OnIt: "🫡",
  GLANCE: "👀", THINKING: "🤔", Get: "👌", LGTM: "✅" };

// `context` is that of card(), plus actions: replyTo, quote, edit, react, recall; `speaker()` is an open id.
export function message(view, context) {
  if (view.msg_type === "system") return el("div", { class: "message system", "data-id": view.message_id, tabindex: "-1" }, el("span", {}, view.text));
  const node = el("div", {
    class: "message", "data-id": view.message_id, role: "group", tabindex: "-1",
    "aria-label": `${view.sender.name}, ${momentOf(view.create_ms)}`,
  });
  node.append(...[avatar(view.sender), el("div", { class: "message-main" },
    heading(view), content(view, context), reactions(view, context)), view.visible_to ? null : toolbar(view, context)].filter(Boolean));
  return node;
}

// The message of a card that is another now.
export function redrawMessage(node, view, context) {
  redrawCard(node.querySelector(".card"), view.card, view.streaming, context.forMessage(view));
}

function heading(view) {
  const time = timeOf(view.create_ms, { hour: "2-digit", minute: "2-digit" });
  return el("div", { class: "heading" },
    el("b", {}, view.sender.name),
    view.sender.kind === "bot" ? el("span", { class: "badge" }, say("bot")) : null,
    view.visible_to ? el("span", { class: "badge only-you" }, say("onlyYou")) : null,
    el("time", { title: momentOf(view.create_ms) }, time),
    view.updated && !view.card && !view.deleted ? el("span", {}, say("edited")) : null);
}

function content(view, context) {
  if (view.deleted) return el("div", { class: "bubble recalled" }, say("recalled"));
  if (view.card) return card(view.card, view.streaming, context.forMessage(view));
  const own = view.sender.open_id === context.speaker() ? "bubble own" : "bubble";
  return el("div", { class: own }, body(view, context));
}

function body(view, context) {
  let value = null;
  try { value = JSON.parse(view.content); } catch { return [view.content]; }
  if (view.msg_type === "text") return withMentions(String(value.text ?? ""), view);
  if (view.msg_type === "post") return post(value, view, context);
  if (view.msg_type === "image") return [picture(value.image_key ?? "", say("image"))];
  if (view.msg_type === "file") return [file(value)];
  if (view.msg_type === "audio") return [voice(value, view.spoken)];
  return [el("span", { class: "hint" }, `[${view.msg_type}] ${value.file_name ?? ""}`)];
}

// Saved, never opened: the answer says so too.
function file(value) {
  const name = String(value.file_name ?? "") || say("file");
  const key = String(value.file_key ?? "");
  if (!/^file_[\w-]+$/.test(key)) return el("span", { class: "hint" }, `[file] ${name}`);
  return el("a", { class: "file", href: `/sandbox/api/resources/${key}`, download: name }, icon("file"), name);
}

function voice(value, spoken) {
  const seconds = Math.round((value.duration ?? 0) / 1000);
  const length = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  return el("span", { class: "voice" }, icon("voice"), `${say("voiceMessage")} ${length}`, el("span", { class: "hint" }, spoken));
}

function withMentions(text, view) {
  const names = new Map(view.mentions.map((one) => [one.key, one]));
  // The longest key first, and no border after it: “@_user_19:00” may be “@_user_1” and “9:00”.
  const keys = [...names.keys(), "@_all"].filter(Boolean).sort((one, other) => other.length - one.length);
  return text.split(new RegExp(`(${keys.join("|")})`)).map((part) => {
    if (part === "@_all") return el("span", { class: "at" }, `@${say("everyone")}`);
    const found = names.get(part);
    return found ? at(found.open_id, () => found.name) : part;
  });
}

function post(value, view, context) {
  const flat = Array.isArray(value.content) ? value : Object.values(value)[0] ?? {};
  const lines = (flat.content ?? []).map((line) => el("p", {}, line.map((part) => postPart(part, view, context))));
  return [flat.title ? el("h4", {}, flat.title) : null, ...lines].filter(Boolean);
}

function postPart(part, view, context) {
  switch (part.tag) {
    case "md": return markdown(part.text ?? "", context.names);
    case "a": return link(part.href ?? "", part.text ?? "");
    case "at": return part.user_id?.startsWith("@") ? el("span", {}, withMentions(part.user_id, view)) : at(part.user_id, context.names);
    case "img": return picture(part.image_key ?? "", say("image"));
    case "code_block": return el("pre", {}, el("code", {}, part.text ?? ""));
    case "hr": return el("hr");
    default: return el("span", {}, withMentions(part.text ?? "", view));
  }
}

function reactions(view, context) {
  if (view.deleted || !view.reactions.length) return null;
  const groups = Map.groupBy ? Map.groupBy(view.reactions, (one) => one.emoji_type) : grouped(view.reactions);
  return el("div", { class: "reactions" }, [...groups].map(([emoji, list]) => el("button", {
    type: "button",
    class: "reaction",
    "aria-label": `${say("react")} ${emoji}: ${list.map((one) => one.name).join(", ")}`,
    onclick: () => context.react(view, emoji),
  }, `${EMOJI[emoji] ?? emoji} ${list.map((one) => one.name).join(", ")}`)));
}

function grouped(list) {
  const groups = new Map();
  for (const one of list) groups.set(one.emoji_type, [...(groups.get(one.emoji_type) ?? []), one]);
  return groups;
}

function toolbar(view, context) {
  if (view.deleted) return null;
  const own = view.sender.open_id === context.speaker();
  const action = (drawing, title, onclick) => el("button", { type: "button", title, "aria-label": title, onclick }, icon(drawing));
  return el("div", { class: "toolbar", role: "toolbar", "aria-label": say("actions") },
    action("quote", say("quote"), () => context.quote(view)),
    action("reply", say("replyInThread"), () => context.replyTo(view)),
    action("like", say("like"), () => context.react(view, "THUMBSUP")),
    own && ["text", "post"].includes(view.msg_type) ? action("edit", say("edit"), () => context.edit(view)) : null,
    own ? action("undo", say("recall"), () => context.recall(view)) : null);
}
