// Light, dark, or as the system has it; a script of its own before the page is drawn, so that nothing flashes.

(() => {
  const LOOKS = ["auto", "light", "dark"];
  const root = document.documentElement;
  let look = null;
  try { look = localStorage.getItem("look"); } catch { /* private mode */ }
  root.dataset.look = LOOKS.includes(look) ? look : "auto";
  window.nextLook = () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const order = dark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    root.dataset.look = order[(order.indexOf(root.dataset.look) + 1) % order.length];
    try { localStorage.setItem("look", root.dataset.look); } catch { /* private mode */ }
  };
})();
