// Cards as DOM nodes: JSON 2.0, and 1.0 as other apps send it.

import { el, link } from "./dom.js";
import { say } from "./labels.js";
import { at, inline, markdown, picture } from "./markdown.js";
import { redraw } from "./redraw.js";

// `context`: names(open_id) → name, click(index, form) → Promise, isOpen(id), setOpen(id, open).
export function card(body, streaming, context) {
  const node = el("div");
  redrawCard(node, body, streaming, context);
  return node;
}

// What the card shows as before keeps its nodes: a press is lost when its button is replaced.
export function redrawCard(node, body, streaming, context) {
  const counter = { buttons: 0, panels: 0 };
  const top = translated(body.i18n_header) ?? body.header;
  const shown = body.body?.elements ?? translated(body.i18n_elements) ?? body.elements;
  const content = elements(shown, context, counter);
  if (streaming) content.push(el("div", { class: "generating" }, el("i"), say("generating")));
  const parts = [{
    key: "body", make: () => el("div", { class: "card-body" }), fill: (inside) => redraw(inside, content.map(whole)),
  }];
  if (top) parts.unshift(whole(header(top, context), "header"));
  node.className = streaming ? "card streaming" : "card";
  redraw(node, parts);
}

const whole = (node, key) => ({ key: String(key), state: node.outerHTML, make: () => node });

function translated(byLocale) {
  return byLocale ? byLocale.zh_cn ?? byLocale.en_us ?? Object.values(byLocale)[0] : undefined;
}

function header(value, context) {
  const node = el("div", { class: `card-header template-${value.template ?? "default"}` });
  node.append(el("strong", {}, text(value.title, context)));
  if (value.subtitle) node.append(el("small", {}, text(value.subtitle, context)));
  for (const tag of value.text_tag_list ?? []) node.append(el("span", { class: "tag" }, tag.text?.content ?? ""));
  return node;
}

function elements(list, context, counter) {
  const made = [];
  let row = null;
  for (const one of list ?? []) {
    if (one.tag !== "button") {
      row = null;
      made.push(element(one, context, counter));
      continue;
    }
    if (!row) made.push((row = el("div", { class: "buttons" })));
    row.append(button(one, context, counter));
  }
  return made;
}

function element(one, context, counter) {
  switch (one.tag) {
    case "markdown": return styled(markdown(one.content ?? "", context.names), one);
    case "div": return div(one, context, counter);
    case "note": return el("div", { class: "note notation" }, (one.elements ?? []).map((part) => noted(part, context)));
    case "action": return el("div", { class: "actions" }, elements(one.actions, context, counter));
    case "hr": return el("hr");
    case "img": return picture(one.img_key ?? "", one.alt?.content ?? "");
    case "person": return at(one.user_id, context.names);
    case "table": return table(one, context);
    case "collapsible_panel": return panel(one, context, counter);
    case "column_set": return columns(one, context, counter);
    case "form": return form(one, context, counter);
    case "select_static": return select(one);
    case "checker": return checker(one, context);
    case "input": return el("input", { name: one.name ?? "", value: one.default_value ?? "", maxlength: one.max_length ?? 1000 });
    case "interactive_container":
      return el("div", { class: "container" }, elements(one.elements, context, counter));
    default: return el("div", { class: "hint" }, `[${one.tag}]`);
  }
}

function div(one, context, counter) {
  const texts = [one.text, ...(one.fields ?? []).map((field) => field.text)].filter(Boolean);
  const rows = texts.map((value) => el("div", {}, text(value, context)));
  return styled(el("div", {}, rows, one.extra ? elements([one.extra], context, counter) : []), one.text ?? {});
}

function noted(part, context) {
  return part.tag === "img" ? picture(part.img_key ?? "", part.alt?.content ?? "") : el("span", {}, text(part, context));
}

function styled(node, one) {
  if (one.text_size === "notation") node.classList.add("notation");
  if (one.text_align === "center") node.classList.add("centered");
  return node;
}

function text(value, context) {
  if (!value) return "";
  if (value.tag === "plain_text") return value.content ?? "";
  return el("span", {}, ...inline(value.content ?? "", context.names));
}

function button(one, context, counter) {
  const index = counter.buttons++;
  const open = (one.behaviors ?? []).find((behavior) => behavior.type === "open_url");
  const kind = `button type-${one.type ?? "default"} size-${one.size ?? "medium"}`;
  if (open && !(one.behaviors ?? []).some((behavior) => behavior.type === "callback")) {
    const node = link(open.default_url ?? "", text(one.text, context));
    node.className = kind;
    return node;
  }
  const node = el("button", { type: "button", class: kind, disabled: Boolean(one.disabled), "data-index": index },
    text(one.text, context));
  node.addEventListener("click", async () => {
    if (node.classList.contains("busy")) return;
    node.classList.add("busy"); // not `disabled`: that would take the focus away
    const box = one.form_action_type === "submit" ? node.closest("form") : null;
    await context.click(index, box ? filledIn(box) : undefined);
    node.classList.remove("busy");
  });
  return node;
}

// A button in it sends what is chosen; nothing is sent by the browser itself.
function form(one, context, counter) {
  const node = el("form", { class: "form" }, elements(one.elements, context, counter));
  for (const one of node.querySelectorAll("select, input:not([type])")) {
    one.setAttribute("aria-label", one.previousElementSibling?.textContent ?? one.name);
  }
  node.addEventListener("submit", (event) => event.preventDefault());
  return node;
}

function filledIn(form) {
  const boxes = [...form.querySelectorAll("[type=checkbox]")].map((box) => [box.name, box.checked]);
  return { ...Object.fromEntries(new FormData(form)), ...Object.fromEntries(boxes) };
}

function checker(one, context) {
  const box = el("input", { type: "checkbox", name: one.name ?? "", checked: Boolean(one.checked), disabled: Boolean(one.disabled) });
  return el("label", { class: "checker" }, box, text(one.text, context));
}

function select(one) {
  const node = el("select", { name: one.name ?? "", disabled: Boolean(one.disabled) });
  if (!one.initial_option) node.append(el("option", { value: "" }, one.placeholder?.content ?? ""));
  for (const option of one.options ?? []) {
    const chosen = option.value === one.initial_option;
    node.append(el("option", { value: option.value, selected: chosen }, option.text?.content ?? ""));
  }
  return node;
}

function panel(one, context, counter) {
  const id = one.element_id ?? `panel-${counter.panels++}`;
  const node = el("details", { class: "panel", open: context.isOpen(id, Boolean(one.expanded)) });
  node.append(el("summary", {}, text(one.header?.title, context)));
  node.append(el("div", { class: "panel-body" }, elements(one.elements, context, counter)));
  node.addEventListener("toggle", () => context.setOpen(id, node.open));
  return node;
}

function columns(one, context, counter) {
  const made = (one.columns ?? []).map((column) => {
    const kind = column.direction === "horizontal" ? "column horizontal" : "column";
    const node = el("div", { class: kind }, elements(column.elements, context, counter));
    if (column.width === "weighted") node.style.flex = `${column.weight ?? 1} 1 0`;
    return node;
  });
  return el("div", { class: `columns ${one.flex_mode ?? "none"}` }, made);
}

function table(one, context) {
  const shown = one.columns ?? [];
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value !== "object") return el("span", {}, ...inline(String(value), context.names));
    return JSON.stringify(value);
  };
  const head = el("tr", {}, shown.map((column) => el("th", {}, column.display_name ?? column.name)));
  const rows = (one.rows ?? []).map((row) => el("tr", {}, shown.map((column) => el("td", {}, cell(row[column.name])))));
  return el("div", { class: "table-box", tabindex: "-1" }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows)));
}
