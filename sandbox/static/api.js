// Talking to the control interface under /sandbox/api.

const BASE = "/sandbox/api/";

export async function get(path, query = {}) {
  const answer = await fetch(`${BASE}${path}?${new URLSearchParams(query)}`);
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error((await answer.json()).error ?? answer.statusText);
  return answer.json();
}

export async function post(path, body) {
  const answer = await fetch(BASE + path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error ?? answer.statusText);
  return value;
}

// Live updates; the browser reconnects by itself and names the last event it saw.
export function follow(after, handlers) {
  const source = new EventSource(`${BASE}stream?after=${after}`);
  for (const [kind, handler] of Object.entries(handlers)) {
    source.addEventListener(kind, (event) => handler(JSON.parse(event.data), Number(event.lastEventId)));
  }
  return source;
}
