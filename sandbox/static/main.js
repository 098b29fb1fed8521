// The page: holds what is shown and who speaks, and draws again what changed.

import { follow, get, post } from "./api.js";
import { arrowsLead, drawChats } from "./chats.js";
import { Composer } from "./composer.js";
import { attempt, click, problem, sendFile, spoken, toast } from "./deeds.js";
import { el, icon } from "./dom.js";
import { inLanguage, label, locale, say, showTimesIn, switchLanguage } from "./labels.js";
import { sections } from "./panel.js";
import { draftOf, keepDraft, keepPlace, placeOf } from "./place.js";
import { listenToPlatform } from "./platform.js";
import { listenToAgendas } from "./agendas.js";
import { listenToShelf } from "./shelf.js";
import { redraw } from "./redraw.js";
import { preview } from "./text.js";
import { Timeline } from "./timeline.js";

const byId = (id) => document.getElementById(id);

const world = {
  people: new Map(), chats: new Map(), messages: new Map(), open: new Map(),
  bot: null, commands: {}, menu: [], whole: new Set(), chatId: null, speaker: null, target: null, seen: 0, unread: new Map(), arrived: [], epoch: 0,
};

const name = (openId) => (openId === "all" ? say("everyone") : world.people.get(openId)?.name ?? openId);
const isP2p = (chat) => chat.mode === "p2p";
const currentChat = () => world.chats.get(world.chatId);
// A card for one person is shown to that person, and is gone when it is taken away.
const isShown = (view) => !view.visible_to || (view.visible_to === world.speaker && !view.deleted && !view.unseen);
const shownIn = (chatId) => [...world.messages.values()].filter((one) => one.chat_id === chatId && isShown(one)).sort((a, b) => a.position - b.position);

const timeline = new Timeline({
  names: name,
  epoch: () => world.epoch,
  find: (id) => world.messages.get(id),
  speaker: () => world.speaker,
  replyTo: (view) => aim("replyTo", view),
  quote: (view) => aim("quoting", view),
  edit: (view) => aim("editing", view),
  react: (view, emoji) => attempt(() => post("reactions", { as: world.speaker, message_id: view.message_id, emoji_type: emoji })),
  recall: (view) => attempt(() => post("recall", { as: world.speaker, message_id: view.message_id })),
  forMessage: (view) => ({
    names: name,
    click: (index, form) => click(world.speaker, view, index, form),
    isOpen: (id, preset) => world.open.get(`${view.message_id}/${id}`) ?? preset,
    setOpen: (id, open) => world.open.set(`${view.message_id}/${id}`, open),
  }),
});

const composer = new Composer({
  send,
  attach: (files) => send("", files),
  changed: (text) => { if (world.target?.how !== "editing") keepDraft(world.chatId, text); },
  cancel: () => aim(null),
  mentions: mentionable,
  commands: () => world.commands[isP2p(currentChat()) ? "p2p" : "group"] ?? [],
  address: () => (isP2p(currentChat()) ? "" : `@${name(world.bot)} `),
});

// Files first, then the text about them. → {isSent, files that are left}
async function send(text, files, aloud) {
  const left = [...files];
  const body = { as: world.speaker, chat_id: world.chatId };
  const { how, view } = world.target ?? {};
  if (how === "editing") {
    const isSent = Boolean(text && await attempt(() => post("edit", { as: world.speaker, message_id: view.message_id, text })));
    if (isSent) { toast(say("editUnheard"), "info"); aim(null); }
    return { isSent: false, files: left };
  }
  if (view) Object.assign(body, { reply_to: view.message_id, quote: how === "quoting" });
  while (left.length) {
    const sent = await attempt(() => sendFile(left[0], body));
    if (!sent) return { isSent: false, files: left };
    timeline.reveal(sent.message_id);
    left.shift();
  }
  if (!text) return { isSent: false, files: left };
  const words = aloud ? { message_type: "audio", text } : spoken(text);
  const sent = await attempt(() => post("messages", { ...body, ...words }));
  if (sent) timeline.reveal(sent.message_id);
  if (sent && how === "quoting") aim(null);
  return { isSent: Boolean(sent), files: left };
}

function mentionable() {
  const members = currentChat().members.map((id) => world.people.get(id)).filter((one) => one && one.open_id !== world.speaker);
  members.sort((a, b) => (b.open_id === world.bot) - (a.open_id === world.bot));
  return [...members, { open_id: "all", name: "all", kind: "user" }];
}

// What the next message is about: `how` is replyTo, quoting or editing.
function aim(how, seen = null) {
  const view = seen && world.messages.get(seen.message_id);
  const wasEditing = world.target?.how === "editing";
  world.target = view ? { how, view } : null;
  if (wasEditing) composer.text = draftOf(world.chatId);
  byId("reply-target").hidden = !view;
  if (!view) return;
  byId("reply-text").textContent = `${say(how)} ${view.sender.name}: ${preview(view, name)}`;
  if (how === "editing") composer.text = view.text;
  composer.focus();
}

function drawList() {
  const last = new Map();
  for (const one of world.messages.values()) if (isShown(one)) last.set(one.chat_id, one);
  const entries = [...world.chats.values()].map((chat) => {
    const newest = last.get(chat.chat_id);
    return {
      chat,
      person: isP2p(chat) ? world.people.get(chat.members.find((id) => id !== world.bot)) : { open_id: chat.chat_id, name: chat.name, kind: "user" },
      preview: newest ? `${newest.sender.name ? `${newest.sender.name}: ` : ""}${newest.deleted ? say("recalled") : preview(newest, name)}` : "",
      unread: world.unread.get(chat.chat_id),
      isCurrent: chat.chat_id === world.chatId,
    };
  });
  drawChats(byId("chat-list"), entries, (chat) => {
    openChat(chat.chat_id);
    composer.focus();
    if (isP2p(chat)) attempt(() => post("enter", { as: chat.members.find((id) => id !== world.bot) }));
  });
}

function drawHeader() {
  const chat = currentChat();
  byId("chat-name").textContent = chat.dissolved ? `${chat.name} (${say("dissolved")})` : chat.name;
  byId("chat-members").textContent = isP2p(chat) ? "" : `${chat.members.length} ${say("members")} · ${chat.members.map(name).join(", ")}`;
  const people = chat.members.map((id) => world.people.get(id)).filter((one) => one && one.open_id !== world.bot);
  if (!people.some((one) => one.open_id === world.speaker)) world.speaker = people[0]?.open_id ?? null;
  redraw(byId("speaker"), people.map((one) => ({ key: one.open_id, state: one.name, make: () => el("option", { value: one.open_id }, one.name) })));
  byId("speaker").value = world.speaker;
  drawMenu(isP2p(chat) ? world.menu : []);
  keepPlace(world.chatId, world.speaker);
}

// The menu of the bot, which only private chats have.
function drawMenu(items) {
  byId("bot-menu").hidden = !items.length;
  byId("bot-menu").replaceChildren(...items.map((one) => el("button", {
    type: "button", class: "quiet",
    onclick: () => attempt(() => post("menu", { as: world.speaker, event_key: one.key })),
  }, inLanguage(one.name))));
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

let drawing = 0;
function redrawSoon() {
  if (drawing) return;
  drawing = requestAnimationFrame(() => {
    drawing = 0;
    timeline.draw(shownIn(world.chatId), world.arrived.splice(0));
    drawList();
  });
}

// Of a long past the page holds the newest messages, and what was asked for before them.
const PART = 200;

async function keepNewest(chatId, before) {
  const query = { newest: PART, ...(chatId && { chat_id: chatId }), ...(before && { before }) };
  const { items } = await get("messages", query);
  const parts = new Map();
  for (const one of items) parts.set(one.chat_id, (parts.get(one.chat_id) ?? 0) + 1);
  for (const id of chatId ? [chatId] : world.chats.keys()) if ((parts.get(id) ?? 0) < PART) world.whole.add(id);
  world.messages = new Map([...items, ...world.messages.values()].map((one) => [one.message_id, one]));
}

async function showEarlier() {
  const box = byId("messages");
  const [chatId, [first]] = [world.chatId, shownIn(world.chatId)];
  await attempt(() => keepNewest(chatId, first?.position));
  if (chatId !== world.chatId) return;
  const fromEnd = box.scrollHeight - box.scrollTop;
  timeline.draw(shownIn(chatId));
  box.scrollTop = box.scrollHeight - fromEnd;
  markEarlier();
}

function markEarlier() { byId("earlier").hidden = world.whole.has(world.chatId); }

async function addPast(button) {
  button.disabled = true;
  button.textContent = say("makingPast");
  const chat = await attempt(() => post("pasts", {}));
  if (chat) {
    await showNew(chat);
    openChat(chat.chat_id);
  }
  button.disabled = false;
  button.textContent = say("addPast");
}

// A group that is there now, with what was said in it before. The feed and the answer to a
// click may both tell of it: its past is asked for once, and both wait for it.
const pastOf = new Map();
async function showNew(chat) {
  const isKnown = world.chats.has(chat.chat_id);
  world.chats.set(chat.chat_id, chat);
  if (!isKnown) pastOf.set(chat.chat_id, attempt(() => keepNewest(chat.chat_id)));
  await pastOf.get(chat.chat_id);
  drawList();
  drawHeader();
}

function openChat(chatId) {
  const isOther = chatId !== world.chatId;
  if (isOther) aim(null);
  world.chatId = chatId;
  world.unread.delete(chatId);
  world.arrived.length = 0;
  showChats(false);
  if (isOther) composer.text = draftOf(chatId);
  drawHeader();
  drawList();
  timeline.open(shownIn(chatId));
  markEarlier();
  inspectSoon();
}

function received(view) {
  const isNew = !world.messages.has(view.message_id);
  world.messages.set(view.message_id, view);
  if (view.chat_id === world.chatId) inspectSoon();
  if (isNew && isShown(view)) {
    if (view.chat_id !== world.chatId) world.unread.set(view.chat_id, (world.unread.get(view.chat_id) ?? 0) + 1);
    else {
      world.arrived.push(view.message_id);
      if (view.sender.open_id !== world.speaker) byId("announcer").textContent = `${say("newFrom")} ${view.sender.name}`;
    }
  }
  redrawSoon();
}

function showChats(isOpen) {
  document.body.classList.toggle("chats-open", isOpen);
  byId("show-chats").setAttribute("aria-expanded", String(isOpen));
}

function relabel() {
  label(document);
  byId("language").textContent = say("language");
  byId("language").lang = locale() === "zh-CN" ? "en" : "zh-CN";
  composer.relabel();
}

function drawLinks(links) {
  byId("links").replaceChildren(...links.map((one) => el("li", {}, el("a", { href: one.href, target: "_blank", rel: "noopener" }, inLanguage(one.title)))));
}

async function load() {
  const state = await get("state");
  showTimesIn(state.timezone);
  world.epoch += 1;
  world.bot = state.bot.open_id;
  world.commands = state.commands;
  world.menu = state.menu;
  world.links = state.links;
  world.people = new Map(state.people.map((one) => [one.open_id, one]));
  world.chats = new Map(state.chats.map((one) => [one.chat_id, one]));
  world.messages = new Map();
  world.whole = new Set();
  await keepNewest();
  byId("offline-model").hidden = !state.offline_model;
  drawLinks(world.links);
  const place = placeOf(location.hash);
  world.speaker = place.speaker;
  openChat(world.chats.has(place.chatId) ? place.chatId : state.chats[0].chat_id);
  return state.feed;
}

function listen() {
  byId("show-chats").append(icon("menu"));
  byId("show-memory").append(icon("memory"));
  byId("show-platform").append(icon("switches"));
  arrowsLead(byId("chat-list"));
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); composer.focus(); });
  byId("language").addEventListener("click", () => { switchLanguage(); relabel(); drawLinks(world.links); openChat(world.chatId); });
  byId("speaker").addEventListener("change", (event) => {
    world.speaker = event.target.value;
    if (world.target?.how === "editing") aim(null);
    keepPlace(world.chatId, world.speaker);
    redrawSoon();
    composer.focus();
  });
  byId("reply-cancel").addEventListener("click", () => { aim(null); composer.focus(); });
  listenToPlatform();
  listenToShelf();
  listenToAgendas();
  byId("earlier").addEventListener("click", showEarlier);
  byId("add-past").addEventListener("click", (event) => addPast(event.currentTarget));
  byId("show-chats").addEventListener("click", () => showChats(!document.body.classList.contains("chats-open")));
  for (const id of ["show-memory", "hide-memory"]) {
    byId(id).addEventListener("click", () => { document.body.classList.toggle("memory-toggled"); byId("show-memory").focus(); });
  }
  window.addEventListener("hashchange", () => {
    const place = placeOf(location.hash);
    if (!world.chats.has(place.chatId)) return;
    world.speaker = place.speaker;
    openChat(place.chatId);
  });
}

async function start() {
  relabel();
  listen();
  world.seen = await load();
  if (matchMedia("(pointer: fine)").matches) composer.focus();  // elsewhere a keyboard would cover the chat
  let silence = 0;
  const source = follow(world.seen, {
    hello: async (value) => {
      clearTimeout(silence);
      if (byId("problem").textContent === say("offline")) problem("");
      if (value.feed < world.seen) world.seen = await load();
    },
    message: (view, number) => { world.seen = number; received(view); },
    chat: showNew,
    person: (person) => { world.people.set(person.open_id, person); world.epoch += 1; drawHeader(); redrawSoon(); },
    delivery: inspectSoon,
  });
  source.addEventListener("error", () => {
    clearTimeout(silence);
    silence = setTimeout(() => problem(say("offline")), 3000);
  });
}

start();
