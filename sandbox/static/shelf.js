// The documents: who can read each, how its link is shared, their comments, and a form to write one.

import { get, post } from "./api.js";
import { Comments } from "./comments.js";
import { attempt } from "./deeds.js";
import { el } from "./dom.js";
import { say } from "./labels.js";

const byId = (id) => document.getElementById(id);
const LINKS = ["closed", "tenant_readable", "anyone_readable"];
let people = [];
let chats = [];
let mentionable = [];
let comments;

export function listenToShelf() {
  const dialog = byId("shelf");
  comments = new Comments({ people: () => mentionable, closed: () => attempt(list) });
  dialog.addEventListener("close", () => comments.close());
  byId("show-shelf").addEventListener("click", async () => { await list(); dialog.showModal(); });
  byId("hide-shelf").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  byId("shelf-form").addEventListener("submit", (event) => { event.preventDefault(); attempt(write); });
}

async function list() {
  byId("shelf-all").hidden = false;
  await draw();
}

async function comment(one) {
  byId("shelf-all").hidden = true;
  await comments.open(one.token);
}

async function draw() {
  const state = await get("state");
  people = state.people.filter((one) => one.kind === "user");
  mentionable = [state.bot, ...state.people.filter((one) => one.open_id !== state.bot.open_id)];
  chats = state.chats.filter((one) => one.mode !== "p2p");
  const { items } = await get("documents");
  byId("shelf-list").replaceChildren(...(items.length ? items.map(row) : [el("p", { class: "hint" }, say("noDocuments"))]));
  byId("shelf-owner").replaceChildren(...people.map((one) => el("option", { value: one.open_id }, one.name)));
}

async function write() {
  const body = { as: byId("shelf-owner").value, title: byId("shelf-name").value, markdown: byId("shelf-text").value };
  await post("documents", body);
  byId("shelf-form").reset();
  await draw();
}

const change = (one, changes) => attempt(async () => { await post("documents/change", { token: one.token, ...changes }); await draw(); });

function row(one) {
  const readers = one.readers.map((reader) => reader.name).join(", ");
  return el("div", { class: one.deleted ? "document gone" : "document" },
    el("b", {}, one.title), ` · ${one.kind}`,
    el("code", {}, one.url),
    el("div", {}, one.deleted ? say("documentDeleted") : `${say("readers")} ${readers}`),
    el("div", { class: "row" }, linkOf(one), shareWith(one),
      el("button", { type: "button", class: "secondary", disabled: one.deleted, onclick: () => attempt(() => comment(one)) }, `${say("comments")} (${one.comments.length})`),
      el("button", { type: "button", class: "secondary", onclick: () => change(one, { deleted: !one.deleted }) }, say(one.deleted ? "restore" : "remove"))));
}

function linkOf(one) {
  const choices = LINKS.includes(one.link) ? LINKS : [...LINKS, one.link];
  return el("select", { "aria-label": say("linkSharing"), onchange: (event) => change(one, { link: event.target.value }) },
    choices.map((link) => el("option", { value: link, selected: link === one.link }, say(`link_${link}`))));
}

// One chooses a person or a group; who is chosen already is taken off.
function shareWith(one) {
  const has = new Set(one.members.map((member) => member.member_id));
  const option = (id, name) => el("option", { value: id }, `${has.has(id) ? "✓ " : ""}${name}`);
  const choose = (event) => {
    const id = event.target.value;
    const others = one.members.filter((member) => member.member_id !== id);
    const kind = id.startsWith("oc_") ? "openchat" : "openid";
    change(one, { members: has.has(id) ? others : [...others, { member_type: kind, member_id: id }] });
  };
  return el("select", { "aria-label": say("shareWith"), onchange: choose },
    el("option", { value: "" }, say("shareWith")),
    people.map((person) => option(person.open_id, person.name)), chats.map((chat) => option(chat.chat_id, chat.name)));
}
