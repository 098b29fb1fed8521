// The switches: what the app is granted, and how strict the platform is.

import { get, post } from "./api.js";
import { attempt } from "./deeds.js";
import { el } from "./dom.js";
import { inLanguage, say } from "./labels.js";

const byId = (id) => document.getElementById(id);

export function listenToPlatform() {
  const dialog = byId("platform");
  byId("show-platform").addEventListener("click", async () => { await draw(); dialog.showModal(); });
  byId("hide-platform").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}

async function draw() {
  const { scopes, platform } = await get("switches");
  byId("switch-list").replaceChildren(
    group(say("scopes"), scopes, (one) => el("code", {}, one.name)),
    group(say("strictness"), platform, () => null),
    await connected(),
  );
}

async function connected() {
  const { items } = await get("grants");
  const row = (one) => el("div", { class: "switch" },
    el("span", {}, one.name, el("code", {}, one.scopes.join(" "))),
    el("button", { type: "button", class: "secondary", onclick: () => attempt(async () => { await post("grants/revoke", { as: one.open_id }); await draw(); }) }, say("revoke")));
  const rows = items.length ? items.map(row) : el("p", { class: "hint" }, say("nobodyConnected"));
  return el("fieldset", { id: "connected" }, el("legend", {}, say("connected")), rows);
}

function group(title, switches, beside) {
  return el("fieldset", {}, el("legend", {}, title), switches.map((one) => el("label", { class: "switch" },
    el("input", { type: "checkbox", name: one.name, checked: one.on, onchange: (event) => attempt(() => turn(event.target)) }),
    el("span", {}, inLanguage(one), beside(one)))));
}

const turn = (box) => post("switches", { [box.name]: box.checked });
