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

// On a narrow screen the menu is one line that scrolls: the current page is in sight.
document.querySelector(".bar nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
