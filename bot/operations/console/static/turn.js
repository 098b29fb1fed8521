// Draws each card of an answer as Feishu draws it, with the code that the sandbox's page draws cards with.
import { card } from "/console/cards/card.js";

const names = JSON.parse(document.getElementById("addressed").textContent);
const someone = document.documentElement.lang === "zh-CN" ? "未知人员" : "someone";
const opened = new Map();
const context = {
  names: (openId) => names[openId] ?? (openId === "all" ? "all" : someone),
  click: async () => {},
  isOpen: (id, preset) => opened.get(id) ?? preset,
  setOpen: (id, open) => opened.set(id, open),
};

for (const place of document.querySelectorAll(".drawn-card")) {
  const drawn = card(JSON.parse(place.querySelector("script").textContent), false, context);
  for (const control of drawn.querySelectorAll("button.button, select")) control.disabled = true; // it is looked at only
  const root = document.createElement("div");
  root.className = "drawn";
  const styles = ["colours.css", "card.css"].map((name) => {
    const link = document.createElement("link");
    Object.assign(link, { rel: "stylesheet", href: `/console/cards/${name}` });
    return link;
  });
  root.attachShadow({ mode: "open" }).append(...styles, drawn);
  place.append(root);
  place.querySelector(".shown-card").hidden = true;
}
