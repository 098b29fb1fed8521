// What a message says, as plain text: for previews and quotes.

const AT = /<at id=([^>]*)><\/at>/g;

function strings(value) {
  if (Array.isArray(value)) return value.flatMap(strings);
  if (!value || typeof value !== "object" || value.tag === "button") return [];
  return Object.entries(value).flatMap(([key, inner]) => (
    key === "content" && typeof inner === "string" ? [inner] : strings(inner)));
}

// All of it; `names(open_id)` gives the name of a person. "" once it is recalled.
function textOf(view, names) {
  if (view.deleted) return "";
  if (!view.card) return view.text || view.spoken || fileName(view);
  const found = [...strings(view.card.header), ...strings(view.card.body)];
  return found.join("\n").replace(AT, (_, id) => `@${names(id)}`).replace(/<[^>]*>/g, "");
}

// One line of it, of a card what it begins with; or what kind of message it is.
export function preview(view, names) {
  const first = view.card?.body?.elements?.find((one) => one.tag === "markdown");
  return textOf(first ? { ...view, card: { body: first } } : view, names).replace(/[*`#>]+/g, "").replace(/\s+/g, " ").trim().slice(0, 120) || `[${view.msg_type}]`;
}

function fileName(view) {
  try { return String(JSON.parse(view.content).file_name ?? ""); } catch { return ""; }
}
