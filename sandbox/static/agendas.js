// Everybody's calendar and tasks, as the bot and people wrote them, and a small form for an event.

import { get, post } from "./api.js";
import { attempt } from "./deeds.js";
import { el } from "./dom.js";
import { locale, say } from "./labels.js";

const byId = (id) => document.getElementById(id);

export function listenToAgendas() {
  const dialog = byId("agendas");
  byId("show-agendas").addEventListener("click", async () => { await draw(); dialog.showModal(); });
  byId("hide-agendas").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  byId("agendas-form").addEventListener("submit", (event) => { event.preventDefault(); attempt(write); });
}

async function draw() {
  const [{ items }, { timezone }] = [await get("agendas"), await get("state")];
  const chosen = byId("agendas-owner").value;
  byId("agendas-list").replaceChildren(...items.map(ofPerson));
  byId("agendas-owner").replaceChildren(...items.map((one) => el("option", { value: one.open_id, selected: one.open_id === chosen }, one.name)));
  byId("agendas-zone").value ||= timezone;
}

async function write() {
  const [start, zone] = [byId("agendas-start").value, byId("agendas-zone").value];
  const end = new Date(Date.parse(`${start}Z`) + 3_600_000).toISOString().slice(0, 16);
  await post("agendas/events", { as: byId("agendas-owner").value, summary: byId("agendas-name").value, start, end, zone });
  byId("agendas-name").value = "";
  await draw();
}

function ofPerson(one) {
  const rows = [...one.events.map(event), ...one.tasks.map(task)];
  return el("section", { class: "document" }, el("b", {}, one.name),
    rows.length ? el("ul", {}, rows) : el("p", { class: "hint" }, say("nothingPlanned")));
}

const local = (seconds, zone, form) => new Date(seconds * 1000).toLocaleString(locale(), { timeZone: zone, ...form });

function event(one) {
  const people = [one.owner, ...one.attendees].join(", ");
  return row(one, `📅 ${one.summary}`, `${span(one.start_time, one.end_time)} · ${people}`);
}

function span(start, end) {
  const day = (date) => local(Date.parse(date) / 1000, "UTC", { dateStyle: "medium" });
  if (start.date) return [...new Set([start.date, end.date])].map(day).join("–");
  const from = local(Number(start.timestamp), start.timezone, { dateStyle: "medium", timeStyle: "short" });
  const until = local(Number(end.timestamp), start.timezone, { timeStyle: "short" });
  return `${from}–${until} (${start.timezone})`;
}

function task(one) {
  const due = one.due && local(Number(one.due.timestamp) / 1000, one.due.is_all_day ? "UTC" : undefined, one.due.is_all_day ? { dateStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" });
  return row(one, `☑ ${one.summary}`, [due && `${say("dueOn")} ${due}`, one.assignees.join(", ")].filter(Boolean).join(" · "));
}

const row = (one, what, details) => el("li", { class: one.deleted ? "gone" : "" }, el("b", {}, what), " ", el("span", { class: "hint" }, details), one.deleted ? ` ${say("documentDeleted")}` : "");
