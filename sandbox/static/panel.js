// Beside the chat: what the bot remembers, and the events that were pushed to it.

import { el } from "./dom.js";
import { inLanguage, say, timeOf } from "./labels.js";

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
  const text = value === null || value === undefined ? "" : String(value);
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
      el("span", {}, one.event_type.replace(/^im\./, "")), el("time", {}, time),
      el("span", {}, `${state}${one.attempts.length > 1 ? ` · ×${one.attempts.length}` : ""}`));
  });
}
