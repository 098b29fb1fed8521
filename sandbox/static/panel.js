// Beside the chat: what the bot remembers, and the events that were pushed to it.

import { el } from "./dom.js";
import { inLanguage, say, timeOf } from "./labels.js";

const EVENTS = {
  "im.message.receive_v1": { en: "A message", zh: "收到消息" },
  "im.message.recalled_v1": { en: "A message was recalled", zh: "消息被撤回" },
  "im.message.reaction.created_v1": { en: "A reaction was added", zh: "添加了表情回应" },
  "im.message.reaction.deleted_v1": { en: "A reaction was taken away", zh: "取消了表情回应" },
  "im.chat.access_event.bot_p2p_chat_entered_v1": { en: "A private chat was opened", zh: "打开了单聊" },
  "im.chat.member.bot.added_v1": { en: "The bot was added", zh: "机器人进群" },
  "im.chat.member.bot.deleted_v1": { en: "The bot was removed", zh: "机器人被移出" },
  "im.chat.member.user.added_v1": { en: "Somebody joined", zh: "有人进群" },
  "im.chat.member.user.deleted_v1": { en: "Somebody left", zh: "有人退群" },
  "im.chat.updated_v1": { en: "The chat was changed", zh: "群信息变更" },
  "im.chat.disbanded_v1": { en: "The chat was dissolved", zh: "群解散" },
  "application.bot.menu_v6": { en: "The menu was used", zh: "点击了菜单" },
  "auth.user_access_token.revoked_v4": { en: "Somebody revoked their approval", zh: "有人撤销了授权" },
  "card.action.trigger": { en: "A button was pressed", zh: "按下了按钮" },
};

// `names(open_id)` gives the name of a person.
export function sections(answer, names) {
  if (!answer) return [el("p", { class: "hint" }, say("noInspector"))];
  return (answer.sections ?? []).map((section) => el("section", {},
    el("h3", {}, inLanguage(section.title)), sectionBody(section, names)));
}

function sectionBody(section, names) {
  if (section.rows?.length) return rows(section.rows, names);
  if (section.text) return el("pre", { class: "plain" }, String(section.text));
  return el("p", { class: "hint" }, say("empty"));
}

function rows(list, names) {
  const shown = list.map((row) => (Array.isArray(row) ? row : Object.values(row)));
  return el("table", { class: "rows" }, el("tbody", {}, shown.map((row) => el("tr", {},
    row.map((value) => cell(value, names))))));
}

function cell(value, names) {
  const text = String(inLanguage(value) ?? "");
  const readable = text.replace(/<at id=([^>]*)><\/at>|\bou_[0-9a-f]{32}\b/g, (id, tagged) => (tagged ? `@${names(tagged)}` : names(id)));
  return el("td", readable === text ? {} : { title: text }, readable);
}

export function deliveries(list) {
  return list.slice(-12).reverse().map((one) => {
    const last = one.attempts.at(-1);
    const state = last ? `${last.status || last.error} · ${Math.round(last.latency_ms)} ms` : say("waiting");
    const time = last ? timeOf(last.at_ms) : "";
    const good = last?.status === 200 ? "push good" : last ? "push bad" : "push";
    return el("div", { class: good },
      el("span", { title: one.event_type }, inLanguage(EVENTS[one.event_type]) ?? one.event_type), el("time", {}, time),
      el("span", {}, `${state}${one.attempts.length > 1 ? ` · ×${one.attempts.length}` : ""}`));
  });
}
