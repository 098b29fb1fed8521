// Beside the chat: what the bot remembers.

import { el } from "./dom.js";
import { inLanguage, say } from "./labels.js";

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
