// Markdown of card JSON 2.0 as DOM nodes: headings, lists, tables, code, quotes, links, images,
// at-tags, font colours. Unknown tags stay visible as text. What may interrupt a paragraph and what
// may not is CommonMark's; a table shows five rows at a time (Feishu, "Rich text (Markdown)").

import { el, link } from "./dom.js";

const NAMED = { nbsp: "\u00a0", lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
const COLOURS = new Set(["red", "green", "blue", "grey", "orange", "purple", "violet", "indigo",
  "turquoise", "yellow", "carmine", "wathet"]);

export function unescapeEntities(text) {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));/gi, (whole, decimal, hex, name) => {
    if (name) return NAMED[name.toLowerCase()] ?? whole;
    const point = decimal ? Number(decimal) : parseInt(hex, 16);
    return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}

const INLINE = [
  ["code", /`([^`\n]+)`/],
  ["at", /<at\s+(?:ids?|user_id|open_id)\s*=\s*["']?([^"'>]*)["']?\s*>(?:[^<]*<\/at>)?/i],
  ["font", /<font\s+color\s*=\s*["']?([\w-]+)["']?\s*>([\s\S]*?)<\/font>/i],
  ["break", /<br\s*\/?>/i],
  ["image", /!\[([^\]\n]*)\]\(\s*([^)\s]+)[^)\n]*\)/],
  ["link", /\[([^\]\n]+)\]\(\s*([^)\s]+)[^)\n]*\)/],
  ["strong", /\*\*(?=\S)([\s\S]*?\S)\*\*/],
  ["del", /~~(?=\S)([\s\S]*?\S)~~/],
  ["em", /(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?!\w)|(?<!\w)_(?=\S)([^_\n]*\S)_(?!\w)/],
  ["url", /https?:\/\/[^\s<>()\[\]"'，。）】]+/],
];

export function inline(text, names) {
  const nodes = [];
  let rest = text;
  while (rest) {
    const next = firstMatch(rest);
    if (!next) break;
    if (next.match.index) nodes.push(unescapeEntities(rest.slice(0, next.match.index)));
    nodes.push(...inlineNode(next.kind, next.match, names));
    rest = rest.slice(next.match.index + next.match[0].length);
  }
  if (rest) nodes.push(unescapeEntities(rest));
  return nodes;
}

function firstMatch(text) {
  let best = null;
  for (const [kind, pattern] of INLINE) {
    const match = pattern.exec(text);
    if (match && (!best || match.index < best.match.index)) best = { kind, match };
  }
  return best;
}

function inlineNode(kind, match, names) {
  const [whole, first, second] = match;
  switch (kind) {
    case "code": return [el("code", {}, unescapeEntities(first))];
    case "at": return first.split(",").map((id) => at(id.trim(), names));
    case "font": {
      const colour = COLOURS.has(first) ? `text-${first}` : "";
      return [el("span", { class: colour }, ...inline(second, names))];
    }
    case "break": return [el("br")];
    case "image": return [picture(second, first)];
    case "link": return [link(unescapeEntities(second), ...inline(first, names))];
    case "url": return [link(whole, whole)];
    default: return [el(kind, {}, ...inline(first ?? second, names))];
  }
}

export function at(id, names) {
  return el("span", { class: "at", title: id }, `@${names(id)}`);
}

// Where the page cannot show pictures of the platform (`data-pictures="none"`) their title stands.
export function picture(key, title) {
  if (!/^img_[\w-]+$/.test(key) || document.documentElement.dataset.pictures === "none") return el("span", { class: "hint" }, title || key);
  return el("img", { src: `/sandbox/api/resources/${key}`, alt: title, class: "picture" });
}

export function markdown(text, names) {
  const lines = String(text).replace(/\r\n?/g, "\n").split("\n");
  const root = el("div", { class: "markdown" });
  let at = 0;
  while (at < lines.length) {
    const [node, next] = block(lines, at, names);
    if (node) root.append(node);
    at = next;
  }
  return root;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const UNDERLINE = /^ {0,3}(=+|-+)\s*$/;
const INDENTED = /^(?: {4}| {0,3}\t)/;
const ROWS_SHOWN = 5;
const QUOTE = /^ {0,3}>\s?/;
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function block(lines, at, names) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  if (INDENTED.test(line)) return indented(lines, at);
  if (FENCE.test(line)) return code(lines, at);
  const heading = HEADING.exec(line);
  if (heading) return [el(`h${heading[1].length}`, {}, ...inline(heading[2], names)), at + 1];
  if (RULE.test(line)) return [el("hr"), at + 1];
  if (QUOTE.test(line)) return quote(lines, at, names);
  if (isTable(lines, at)) return table(lines, at, names);
  if (ITEM.test(line)) return list(lines, at, names);
  return paragraph(lines, at, names);
}

function code(lines, at) {
  const [, fence, language] = FENCE.exec(lines[at]);
  const body = [];
  let next = at + 1;
  while (next < lines.length && !lines[next].trim().startsWith(fence)) body.push(lines[next++]);
  const pre = el("pre", {}, el("code", {}, unescapeEntities(body.join("\n"))));
  if (language) pre.dataset.language = language;
  return [pre, next + 1];
}

function indented(lines, at) {
  const body = [];
  let next = at;
  while (next < lines.length && (INDENTED.test(lines[next]) || !lines[next].trim())) {
    body.push(lines[next++].replace(INDENTED, ""));
  }
  return [el("pre", {}, el("code", {}, unescapeEntities(body.join("\n").trimEnd()))), next];
}

function quote(lines, at, names) {
  const body = [];
  let next = at;
  while (next < lines.length && QUOTE.test(lines[next])) body.push(lines[next++].replace(QUOTE, ""));
  return [el("blockquote", {}, markdown(body.join("\n"), names)), next];
}

function isTable(lines, at) {
  return lines[at].includes("|") && at + 1 < lines.length
    && lines[at + 1].includes("|") && DELIMITER.test(lines[at + 1]);
}

function cells(line) {
  return line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function table(lines, at, names) {
  const head = cells(lines[at]);
  const row = (tag, values) => el("tr", {}, head.map((_, n) => el(tag, {}, ...inline(values[n] ?? "", names))));
  const rows = [];
  let next = at + 2;
  while (next < lines.length && lines[next].includes("|") && lines[next].trim()) {
    rows.push(row("td", cells(lines[next++])));
  }
  const made = el("table", {}, el("thead", {}, row("th", head)), el("tbody", {}, rows));
  return [el("div", { class: "table-box" }, made, pager(rows)), next];
}

function pager(rows) {
  const pages = Math.ceil(rows.length / ROWS_SHOWN);
  let page = 0;
  const place = el("span");
  const show = (to) => {
    page = Math.min(Math.max(to, 0), pages - 1);
    rows.forEach((row, n) => { row.hidden = Math.floor(n / ROWS_SHOWN) !== page; });
    place.textContent = `${page + 1} / ${pages}`;
  };
  if (pages < 2) return null;
  show(0);
  const turn = (sign, by) => el("button", { type: "button", onclick: () => show(page + by) }, sign);
  return el("div", { class: "pager" }, turn("‹", -1), place, turn("›", 1));
}

function list(lines, at, names) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const made = el(ordered ? "ol" : "ul", ordered ? { start: parseInt(mark, 10) } : {});
  let next = at;
  while (next < lines.length) {
    const found = ITEM.exec(lines[next]);
    if (!found || found[1].length < indent.length) break;
    if (found[1].length === indent.length && /\d/.test(found[2]) !== ordered) break;
    if (found[1].length > indent.length) {
      const [inner, after] = list(lines, next, names);
      (made.lastElementChild ?? made).append(inner);
      next = after;
      continue;
    }
    made.append(el("li", {}, ...inline(found[3], names)));
    next += 1;
    while (next < lines.length && lines[next].trim() && /^\s{2,}/.test(lines[next]) && !ITEM.test(lines[next])) {
      made.lastElementChild.append(el("br"), ...inline(lines[next++].trim(), names));
    }
  }
  return [made, next];
}

function paragraph(lines, at, names) {
  const body = [lines[at]];
  let next = at + 1;
  let level = 0;
  while (next < lines.length && lines[next].trim() && !level) {
    const underline = UNDERLINE.exec(lines[next]);
    if (underline) level = underline[1].startsWith("=") ? 1 : 2;
    else if (startsBlock(lines, next)) break;
    else body.push(lines[next]);
    next += 1;
  }
  const parts = body.flatMap((line, n) => (n ? [el("br"), ...inline(line, names)] : inline(line, names)));
  return [el(level ? `h${level}` : "p", {}, ...parts), next];
}

function startsBlock(lines, at) {
  const line = lines[at];
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)
    || interrupts(line) || isTable(lines, at);
}

// Of lists with numbers only one that starts at 1 ends a paragraph.
function interrupts(line) {
  const item = ITEM.exec(line);
  return Boolean(item) && (!/\d/.test(item[2]) || parseInt(item[2], 10) === 1);
}
