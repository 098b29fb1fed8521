// Asks before what cannot be undone; everything else works without a script.
document.addEventListener("submit", (event) => {
  const sure = event.target.dataset.sure;
  if (sure && !window.confirm(sure)) event.preventDefault();
});

// Escape closes what is open, and the focus goes back to what opened it.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = document.querySelector("details.display[open]");
  if (!open) return;
  open.removeAttribute("open");
  open.querySelector("summary").focus();
});
