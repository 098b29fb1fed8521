// Building elements. Text always goes in as text, never as HTML.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// Only http and https become links, as in Feishu.
export function link(href, ...children) {
  if (!/^https?:\/\//i.test(href)) return el("span", {}, ...children);
  return el("a", { href, target: "_blank", rel: "noreferrer noopener" }, ...children);
}

// Line drawings on a 16 x 16 grid, so that nothing depends on an emoji font.
const DRAWINGS = {
  reply: "M2.5 3h11v8H7l-3 2.5V11H2.5z",
  like: "M2 7h2.5v6.5H2zM4.5 7l3-5c1.4 0 1.8 1 1.5 2.2L8.6 6h4.2c.8 0 1.4.7 1.2 1.5l-1 4.8c-.2.7-.7 1.2-1.4 1.2H4.5",
  undo: "M6 3 2.5 6.5 6 10M3 6.5h6.5a3.5 3.5 0 0 1 0 7H6",
  memory: "M2.5 3.5h11v9h-11zM10 3.5v9M4.5 6h3M4.5 8.5h3",
  attach: "M12.5 7.5 7.6 12.4a3 3 0 0 1-4.2-4.2l5.3-5.3a2 2 0 0 1 2.8 2.8l-5.2 5.2a1 1 0 0 1-1.4-1.4l4.6-4.6",
  file: "M4 1.5h5l3 3v10H4zM9 1.5v3h3",
  quote: "M6.5 4.5h-4v4h3c0 2-1 3-3 3M13.5 4.5h-4v4h3c0 2-1 3-3 3",
  edit: "M2.5 13.5l.7-3L10.5 3.2l2.3 2.3-7.3 7.3zM9 4.7 11.3 7",
  down: "M8 2.5v11M3.5 9 8 13.5 12.5 9",
  switches: "M2 5h6M12 5h2M10 3a2 2 0 1 0 0 4 2 2 0 1 0 0-4M2 11h2M8 11h6M6 9a2 2 0 1 0 0 4 2 2 0 1 0 0-4",
  voice: "M8 2a2 2 0 0 0-2 2v4a2 2 0 0 0 4 0V4a2 2 0 0 0-2-2M3.5 7.5a4.5 4.5 0 0 0 9 0M8 12v2.5",
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
};

export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const node = document.createElementNS(space, "svg");
  const path = document.createElementNS(space, "path");
  node.setAttribute("viewBox", "0 0 16 16");
  node.setAttribute("class", "icon");
  node.setAttribute("aria-hidden", "true");
  path.setAttribute("d", DRAWINGS[name]);
  node.append(path);
  return node;
}

const COLOURS = ["#2b5fd9", "#c93b36", "#0a7a54", "#a85a00", "#7f3bf5", "#0b7285", "#c02a8c"];

export function avatar(person) {
  const bot = person.kind === "bot";
  const chinese = /[\u3400-\u9fff]/.test(person.name);
  const initials = bot ? "✦" : chinese
    ? person.name.slice(-2)
    : person.name.split(/\s+/).map((word) => word[0]).join("").slice(0, 2).toUpperCase();
  const node = el("span", { class: bot ? "avatar bot" : "avatar", "aria-hidden": "true" }, initials);
  const sum = [...person.open_id].reduce((total, letter) => (total * 31 + letter.charCodeAt(0)) % 65521, 7);
  if (!bot) node.style.backgroundColor = COLOURS[sum % COLOURS.length];
  return node;
}
