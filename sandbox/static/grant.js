// Somebody approves, or refuses, that the app acts as them. Who that is, is chosen here.

import { get, post } from "./api.js";
import { el } from "./dom.js";
import { inLanguage, label, say, switchLanguage } from "./labels.js";

const byId = (id) => document.getElementById(id);
const code = new URLSearchParams(location.search).get("user_code") ?? "";
let asked = null;

async function load() {
  try { asked = await get("grants/request", { user_code: code }); } catch { asked = null; }
  draw();
}

function draw() {
  label(document);
  byId("language").textContent = say("language");
  document.title = say("brand");
  const waits = asked?.state === "waiting";
  const closed = asked?.scopes.filter((one) => !one.open).map((one) => one.name) ?? [];
  byId("grant-title").textContent = asked ? say("grantTitle").replace("{}", asked.app) : say("grantUnknown");
  byId("grant-asks").hidden = !asked;
  byId("grant-scopes").replaceChildren(...(asked?.scopes ?? []).map((one) => el("li", {}, inLanguage(one), el("code", {}, one.name))));
  byId("grant-missing").hidden = !closed.length;
  byId("grant-missing").textContent = `${say("grantMissing")} ${closed.join(", ")} (20027)`;
  byId("grant-form").hidden = !waits;
  byId("approve").disabled = closed.length > 0;
  byId("grant-state").textContent = asked && !waits ? say(`grant_${asked.state}`) : "";
  fillPeople();
}

function fillPeople() {
  const select = byId("grant-person");
  if (select.options.length || !asked) return;
  select.replaceChildren(...asked.people.map((one) => el("option", { value: one.open_id }, one.name)));
}

async function decide(approve) {
  const problem = byId("problem");
  problem.hidden = true;
  try {
    await post("grants", { as: byId("grant-person").value, user_code: code, approve });
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
  }
  await load();
}

byId("grant-form").addEventListener("submit", (event) => { event.preventDefault(); decide(true); });
byId("refuse").addEventListener("click", () => decide(false));
byId("language").addEventListener("click", () => { switchLanguage(); draw(); });
load();
