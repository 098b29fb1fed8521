// What one does in the chat, and what is said when it does not work.

import { post } from "./api.js";
import { locale, say } from "./labels.js";

const MOST_BYTES = 10 * 1024 * 1024;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const byId = (id) => document.getElementById(id);

// The value of the action, or null after its trouble is shown.
export async function attempt(action) {
  try {
    const value = await action();
    problem("");
    return value ?? true;
  } catch (error) {
    problem(error.message);
    return null;
  }
}

export function problem(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = !text;
}

export function toast(text, kind) {
  const node = byId("toast");
  node.textContent = text;
  node.className = kind;
  node.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { node.hidden = true; }, 3000);
}

// `form`: what is chosen in the form that the button submits, by name.
export async function click(speaker, view, index, form) {
  const seen = await attempt(() => post("click", { as: speaker, message_id: view.message_id, index, form }));
  if (!seen) return;
  if (seen.code) toast(`${say("clickFailed")} (${seen.code})`, "error");
  else if (seen.toast) {
    const ours = seen.toast.i18n?.[locale() === "zh-CN" ? "zh_cn" : "en_us"];
    toast(ours ?? seen.toast.content ?? "", seen.toast.type ?? "info");
  }
}

// The message that a text becomes: the JSON of a card is posted as that card, as another app does it.
export function spoken(text) {
  let value = null;
  try { value = JSON.parse(text); } catch { return { text }; }
  const isCard = value && (value.schema === "2.0" || Array.isArray(value.elements) || value.i18n_elements);
  return isCard ? { message_type: "interactive", content: text } : { text };
}

// In Feishu a file is a message of its own; the question about it comes after it, or quotes it.
// `body` says who sends it where.
export async function sendFile(file, body) {
  if (file.size > MOST_BYTES) throw new Error(say("fileTooLarge"));
  const data = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,?/, ""));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const isPicture = PICTURES.includes(file.type);
  const kind = isPicture ? { message_type: "image", mime: file.type } : { message_type: "file" };
  return post("messages", { ...body, ...kind, file_base64: data, file_name: file.name });
}
