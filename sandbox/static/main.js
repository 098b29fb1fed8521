// The page: holds what is shown and who speaks, and redraws what changed.

import { follow, get, post } from "./api.js";
import { Composer } from "./composer.js";
import { avatar, el, icon } from "./dom.js";
import { label, say, showTimesIn, switchLanguage } from "./labels.js";
import { message } from "./message.js";
import { deliveries, sections } from "./panel.js";

const byId = (id) => document.getElementById(id);

const world = {
  people: new Map(), chats: new Map(), messages: new Map(), pushes: new Map(), open: new Map(),
  bot: null, chatId: null, speaker: null, replyTo: null, seen: 0, unread: new Map(),
};

const name = (openId) => (openId === "all" ? say("everyone") : world.people.get(openId)?.name ?? openId);
const isP2p = (chat) => chat.mode === "p2p";
const currentChat = () => world.chats.get(world.chatId);
// A card for one person is shown to that person, and is gone when it is taken away.
const isShown = (view) => !view.visible_to || (view.visible_to === world.speaker && !view.deleted);

const context = {
  names: name,
  speaker: () => world.speaker,
  replyTo: setReply,
  react: (view, emoji) => attempt(() => post("reactions", { as: world.speaker, message_id: view.message_id, emoji_type: emoji })),
  recall: (view) => attempt(() => post("recall", { as: world.speaker, message_id: view.message_id })),
  forMessage: (view) => ({
    names: name,
    click: (index) => click(view, index),
    isOpen: (id, preset) => world.open.get(`${view.message_id}/${id}`) ?? preset,
    setOpen: (id, open) => world.open.set(`${view.message_id}/${id}`, open),
  }),
};

const composer = new Composer(mentionable, send);

async function attempt(action) {
  try {
    const value = await action();
    byId("problem").hidden = true;
    return value ?? true;
  } catch (error) {
    byId("problem").textContent = error.message;
    byId("problem").hidden = false;
    return null;
  }
}

async function send(text) {
  const chosen = world.replyTo;
  const body = { as: world.speaker, chat_id: world.chatId, text };
  if (chosen) body.reply_to = chosen.message_id;
  return attempt(() => post("messages", body));
}

const MOST_BYTES = 10 * 1024 * 1024;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

// In Feishu a file is a message of its own; the question about it comes after it, or quotes it.
async function sendFile(chosen) {
  await attempt(async () => {
    if (chosen.size > MOST_BYTES) throw new Error(say("fileTooLarge"));
    const data = await new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,?/, ""));
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(chosen);
    });
    const type = PICTURES.includes(chosen.type) ? "image" : "file";
    const body = { as: world.speaker, chat_id: world.chatId, message_type: type, file_base64: data, file_name: chosen.name };
    if (type === "image") body.mime = chosen.type;
    if (world.replyTo) body.reply_to = world.replyTo.message_id;
    return post("messages", body);
  });
}

async function click(view, index) {
  const seen = await attempt(() => post("click", { as: world.speaker, message_id: view.message_id, index }));
  if (!seen) return;
  if (seen.code) toast(`${say("clickFailed")} (${seen.code})`, "error");
  else if (seen.toast) toast(seen.toast.content ?? "", seen.toast.type ?? "info");
}

function toast(text, kind) {
  const node = byId("toast");
  node.textContent = text;
  node.className = kind;
  node.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { node.hidden = true; }, 3000);
}

function mentionable() {
  const members = currentChat().members.map((id) => world.people.get(id)).filter((one) => one && one.open_id !== world.speaker);
  members.sort((a, b) => (b.open_id === world.bot) - (a.open_id === world.bot));
  return [...members, { open_id: "all", name: "all", kind: "user" }];
}

function setReply(view) {
  world.replyTo = view;
  byId("reply-target").hidden = !view;
  if (view) {
    const text = view.text || (view.card && cardPreview(view.card)) || `[${view.msg_type}]`;
    byId("reply-text").textContent = `${say("replyTo")} ${view.sender.name}: ${text.replace(/<[^>]*>/g, "").slice(0, 60)}`;
    composer.focus();
  }
}

function drawChats() {
  const entry = (chat) => {
    const person = isP2p(chat)
      ? world.people.get(chat.members.find((id) => id !== world.bot))
      : { open_id: chat.chat_id, name: chat.name, kind: "user" };
    const last = [...world.messages.values()].filter((one) => one.chat_id === chat.chat_id && isShown(one)).at(-1);
    const preview = last ? `${last.sender.name}: ${last.text || (last.card ? cardPreview(last.card) : `[${last.msg_type}]`)}` : "";
    const unread = world.unread.get(chat.chat_id);
    return el("button", {
      type: "button", class: chat.chat_id === world.chatId ? "chat current" : "chat", onclick: () => { openChat(chat.chat_id); if (isP2p(chat)) attempt(() => post("enter", { as: person.open_id })); },
    }, avatar(person), el("span", { class: "chat-text" }, el("b", {}, chat.name), el("small", {}, preview)),
    unread ? el("span", { class: "unread" }, String(unread)) : null);
  };
  const chats = [...world.chats.values()];
  byId("chat-list").replaceChildren(
    el("h2", {}, say("groups")), ...chats.filter((one) => !isP2p(one)).map(entry),
    el("h2", {}, say("p2p")), ...chats.filter(isP2p).map(entry));
}

function cardPreview(body) {
  const first = body.body?.elements?.find((one) => one.tag === "markdown");
  return (first?.content ?? "").replace(/<at id=([^>]*)><\/at>/g, (_, id) => `@${name(id)}`).replace(/<[^>]*>/g, "");
}

function drawHeader() {
  const chat = currentChat();
  byId("chat-name").textContent = chat.dissolved ? `${chat.name} (${say("dissolved")})` : chat.name;
  byId("chat-members").textContent = isP2p(chat) ? "" : `${chat.members.length} ${say("members")} · ${chat.members.map(name).join(", ")}`;
  byId("attach").append(icon("attach"));
  byId("attach").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", async (event) => {
    const [chosen] = event.target.files;
    event.target.value = "";
    if (chosen) await sendFile(chosen);
  });
  byId("hears-all").parentElement.hidden = isP2p(chat);
  const people = chat.members.map((id) => world.people.get(id)).filter((one) => one && one.open_id !== world.bot);
  if (!people.some((one) => one.open_id === world.speaker)) world.speaker = people[0]?.open_id ?? null;
  byId("speaker").replaceChildren(...people.map((one) => el("option", { value: one.open_id, selected: one.open_id === world.speaker }, one.name)));
}

function drawMessages(keepPlace) {
  const box = byId("messages");
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  const all = [...world.messages.values()].filter((one) => one.chat_id === world.chatId && isShown(one)).sort((a, b) => a.position - b.position);
  const replies = new Map();
  for (const one of all) if (one.thread_id && one.root_id) replies.set(one.root_id, [...(replies.get(one.root_id) ?? []), one]);
  const roots = all.filter((one) => !(one.thread_id && one.root_id));
  box.replaceChildren(...roots.map((root) => block(root, replies.get(root.message_id) ?? [])));
  if (!roots.length) box.append(el("p", { class: "empty" }, say("nothing")));
  if (atEnd || !keepPlace) box.scrollTop = box.scrollHeight;
}

function block(root, replies) {
  const node = el("div", { class: "block" });
  if (root.parent_id) {
    const parent = world.messages.get(root.parent_id);
    node.append(el("div", { class: "quoted" }, parent ? `${parent.sender.name}: ${parent.text || cardPreview(parent.card ?? {})}` : ""));
  }
  node.append(message(root, context));
  if (root.thread_id) {
    node.append(el("div", { class: "thread" }, replies.map((one) => message(one, context)),
      el("button", { type: "button", class: "thread-reply", onclick: () => setReply(root) }, icon("reply"), say("replyInThread"))));
  }
  return node;
}

let inspecting = 0;
function inspectSoon() {
  clearTimeout(inspecting);
  inspecting = setTimeout(async () => {
    const chatId = world.chatId;
    const answer = await attempt(() => get("inspect", { chat_id: chatId }).then((value) => value ?? false));
    if (chatId === world.chatId) byId("sections").replaceChildren(...sections(answer === true ? null : answer, name));
  }, 250);
}

function drawPushes() {
  byId("push-list").replaceChildren(...deliveries([...world.pushes.values()]));
}

let drawing = 0;
function redrawSoon() {
  if (drawing) return;
  drawing = requestAnimationFrame(() => {
    drawing = 0;
    drawMessages(true);
    drawChats();
  });
}

function openChat(chatId) {
  world.chatId = chatId;
  world.unread.delete(chatId);
  document.body.classList.remove("chats-open");
  setReply(null);
  drawChats();
  drawHeader();
  drawMessages(false);
  inspectSoon();
}

function received(view) {
  const isNew = !world.messages.has(view.message_id);
  world.messages.set(view.message_id, view);
  if (view.chat_id === world.chatId) inspectSoon();
  else if (isNew && isShown(view)) world.unread.set(view.chat_id, (world.unread.get(view.chat_id) ?? 0) + 1);
  redrawSoon();
}

function relabel() {
  label(document);
  byId("language").textContent = say("language");
  composer.relabel();
}

async function load() {
  const [state, messages, pushed] = await Promise.all([get("state"), get("messages"), get("deliveries")]);
  showTimesIn(state.timezone);
  world.bot = state.bot.open_id;
  world.people = new Map(state.people.map((one) => [one.open_id, one]));
  world.chats = new Map(state.chats.map((one) => [one.chat_id, one]));
  world.messages = new Map(messages.items.map((one) => [one.message_id, one]));
  world.pushes = new Map(pushed.items.map((one) => [one.number, one]));
  byId("offline-model").hidden = !state.offline_model;
  byId("hears-all").checked = state.switches.all_group_messages;
  openChat(world.chats.has(world.chatId) ? world.chatId : state.chats[0].chat_id);
  drawPushes();
  return state.feed;
}

function listen() {
  byId("show-chats").append(icon("menu"));
  byId("show-memory").append(icon("memory"));
  byId("language").addEventListener("click", () => { switchLanguage(); relabel(); openChat(world.chatId); drawPushes(); });
  byId("speaker").addEventListener("change", (event) => { world.speaker = event.target.value; drawMessages(true); drawChats(); composer.focus(); });
  byId("reply-cancel").addEventListener("click", () => setReply(null));
  byId("hears-all").addEventListener("change", (event) => attempt(() => post("switches", { all_group_messages: event.target.checked })));
  byId("show-chats").addEventListener("click", () => document.body.classList.toggle("chats-open"));
  byId("show-memory").addEventListener("click", () => document.body.classList.toggle("memory-toggled"));
  byId("hide-memory").addEventListener("click", () => document.body.classList.toggle("memory-toggled"));
}

async function start() {
  relabel();
  listen();
  world.seen = await load();
  let silence = 0;
  const source = follow(world.seen, {
    hello: async (value) => {
      clearTimeout(silence);
      if (byId("problem").textContent === say("offline")) byId("problem").hidden = true;
      if (value.feed < world.seen) world.seen = await load();
    },
    message: (view, number) => { world.seen = number; received(view); },
    chat: (chat) => { world.chats.set(chat.chat_id, chat); drawChats(); drawHeader(); },
    person: (person) => { world.people.set(person.open_id, person); drawHeader(); },
    delivery: (one) => { world.pushes.set(one.number, one); drawPushes(); inspectSoon(); },
  });
  source.addEventListener("error", () => {
    clearTimeout(silence);
    silence = setTimeout(() => {
      byId("problem").textContent = say("offline");
      byId("problem").hidden = false;
    }, 3000);
  });
}

start();
