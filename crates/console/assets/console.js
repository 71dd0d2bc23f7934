// Live updates and keys. Every page is complete without this file.
"use strict";

const QUIET_MS = 300;
const body = document.body;

/* Live: where something changed, the page is asked for again, and the parts that differ are put in place. What a person
   has opened, focused or typed into stays. */
const live = body.dataset.live;
const state = document.getElementById("live-state");
let due = 0;
let busy = false;

function say(text) {
  if (state && state.textContent !== text) state.textContent = text;
}

function isInUse(part) {
  if (part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")) return true;
  const fields = part.querySelectorAll("input:not([type=hidden]), textarea");
  return Array.from(fields).some((it) => it.type !== "checkbox" && it.value !== it.defaultValue);
}

function put(fresh) {
  for (const part of document.querySelectorAll("[data-live-part]")) {
    const next = fresh.getElementById(part.id);
    if (!next) {
      if (!isInUse(part)) part.replaceChildren();
      continue;
    }
    const opened = Array.from(part.querySelectorAll("details[open][id]"), (it) => it.id);
    for (const id of opened) next.querySelector("#" + CSS.escape(id))?.setAttribute("open", "");
    if (next.isEqualNode(part)) continue;
    if (isInUse(part)) {
      say("Something changed here since you began: send it to see, or load the page again.");
      continue;
    }
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const index = focused ? Array.from(part.querySelectorAll("a, button, summary, [tabindex]")).indexOf(focused) : -1;
    const left = part.querySelector(".scroll")?.scrollLeft ?? 0;
    part.replaceWith(document.adoptNode(next));
    const scroll = next.querySelector(".scroll");
    if (scroll) scroll.scrollLeft = left;
    if (index >= 0) next.querySelectorAll("a, button, summary, [tabindex]")[index]?.focus({ preventScroll: true });
  }
  document.title = fresh.title;
}

async function refresh() {
  if (busy) return wake();
  busy = true;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
    if (answer.ok) put(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    say("Not connected: what you see may be old.");
  } finally {
    busy = false;
  }
}

function wake() {
  clearTimeout(due);
  due = setTimeout(refresh, QUIET_MS);
}

function follow(address) {
  const source = new EventSource(address);
  let first = true;
  const heard = (event) => {
    // The first word is what the page shows already, unless something happened since it was made.
    if (!first || event.type !== "runs") wake();
    first = false;
    say("Live");
  };
  for (const name of ["update", "runs", "gone"]) source.addEventListener(name, heard);
  source.addEventListener("end", () => {
    wake();
    say("");
    source.close();
  });
  source.addEventListener("open", () => say("Live"));
  source.addEventListener("error", () => say(source.readyState === EventSource.CLOSED ? "" : "Not connected: trying again."));
  return source;
}

if (live && "EventSource" in window) {
  // A browser keeps few connections to one host: a page that nobody looks at needs none.
  let source = document.hidden ? null : follow(live);
  const rest = () => {
    source?.close();
    source = null;
  };
  addEventListener("pagehide", rest);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return rest();
    source ??= follow(live);
    wake();
  });
}

/* Keys: `g` and a letter go to a page, `/` to the filter, `j` and `k` through a list, `?` shows them. */
const GO = "orevswca";
let before = "";

function keys() {
  const shown = document.querySelector(".keys");
  if (shown) return shown.remove();
  const box = document.createElement("aside");
  box.className = "keys card";
  box.setAttribute("aria-label", "Keys");
  const list = document.createElement("dl");
  const rows = [["/", "to the filter"], ["j k", "down and up a list"], ["g o", "overview"], ["g r", "runs"], ["g e", "effects"],
    ["g v", "events"], ["g s", "signals"], ["g w", "workflows"], ["g c", "schedules"], ["g a", "audit"], ["?", "hide this"]];
  for (const [key, what] of rows) {
    const term = list.appendChild(document.createElement("dt"));
    term.appendChild(document.createElement("kbd")).textContent = key;
    list.appendChild(document.createElement("dd")).textContent = what;
  }
  box.appendChild(list);
  body.appendChild(box);
}

function step(by) {
  const links = Array.from(document.querySelectorAll("#list tbody a.id, #steps tbody a"));
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
  next?.focus();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  const key = event.key;
  if (before === "g" && GO.includes(key)) {
    const link = Array.from(document.querySelectorAll(".bar nav a")).find((it) => it.dataset.key === key);
    if (link) location.assign(link.href);
  } else if (key === "/") {
    const field = document.querySelector(".filter input:not([type=hidden]), .filter select");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  } else if (key === "j") step(1);
  else if (key === "k") step(-1);
  else if (key === "?") keys();
  else if (key === "Escape") document.querySelector(".keys")?.remove();
  before = key;
});
