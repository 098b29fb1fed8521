// Where one is and who one is, in the address: a reload comes back to the same chat as the same person.

export function placeOf(hash) {
  const [chatId = "", speaker = ""] = hash.replace(/^#\/?/, "").split("/");
  return { chatId, speaker };
}

export function keepPlace(chatId, speaker) {
  const hash = `#/${chatId}/${speaker ?? ""}`;
  if (location.hash !== hash) history.replaceState(null, "", hash);
}

// What was written and not sent yet, by chat; kept for this tab.
export function draftOf(chatId) {
  try { return sessionStorage.getItem(`draft ${chatId}`) ?? ""; } catch { return ""; }
}

export function keepDraft(chatId, text) {
  try {
    if (text) sessionStorage.setItem(`draft ${chatId}`, text);
    else sessionStorage.removeItem(`draft ${chatId}`);
  } catch { /* private mode */ }
}
