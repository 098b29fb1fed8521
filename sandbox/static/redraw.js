// Drawing again without disturbing anybody: what says the same stays, and so does the focus.

const FOCUSABLE = "a[href], button, summary, input, select, textarea, [tabindex]";

// `parts`: [{key, state, make, fill}] in their order. A node is made anew only when its `state`
// is another than it was drawn from; `fill(node)` runs every time.
export function redraw(parent, parts) {
  const had = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  const wanted = new Set(parts.map((part) => part.key));
  for (const [key, node] of had) if (!wanted.has(key)) takeAway(node);
  let at = parent.firstElementChild;
  for (const { key, state = "", make, fill } of parts) {
    let node = had.get(key);
    if (!node || node.drawnFrom !== state) {
      const fresh = make();
      fresh.dataset.key = key;
      fresh.drawnFrom = state;
      if (node) exchange(node, fresh);
      if (at === node) at = node ? fresh : at;
      node = fresh;
    }
    fill?.(node);
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
  }
}

function exchange(node, fresh) {
  const active = document.activeElement;
  const before = node.contains(active) ? [node, ...node.querySelectorAll(FOCUSABLE)] : [];
  node.replaceWith(fresh);
  if (!before.length) return;
  const now = [fresh, ...fresh.querySelectorAll(FOCUSABLE)];
  const same = active === node ? fresh : now.find((one, n) => n && named(one) === named(active));
  focusOn(same ?? now[Math.min(before.indexOf(active), now.length - 1)]);
}

const named = (node) => `${node.tagName} ${node.getAttribute("aria-label") ?? node.textContent}`;

function takeAway(node) {
  const near = node.nextElementSibling ?? node.previousElementSibling;
  const held = node.contains(document.activeElement);
  node.remove();
  if (held) focusOn(near?.matches(FOCUSABLE) ? near : near?.querySelector(FOCUSABLE));
}

const focusOn = (node) => node?.focus({ preventScroll: true });
