"use strict";
// Fetches the page again when something has changed, and replaces the parts marked data-live.
// A part that has the focus, or a form that is being filled in, stays as it is.
// After each fetch it rests for 0.9 s, or ten times as long as the fetch took: a page that is
// long in the making must not be all that the gateway does.
(() => {
  const kinds = (document.body.dataset.events || "").split(" ").filter(Boolean);
  const note = document.getElementById("live");
  if (!kinds.length || !note || !window.EventSource) return;
  const policy = window.trustedTypes ? trustedTypes.createPolicy("live", { createHTML: (s) => s }) : { createHTML: (s) => s };
  let busy = false;
  let again = false;
  let paused = false;
  let timer = 0;
  let rest = 0; // until when nothing is fetched
  const say = (text) => { note.textContent = paused ? "Paused" : text; };
  // The words of ago in times.go.
  const minutes = (s) => s >= 3600 && s < 172800 && Math.floor(s % 3600 / 60) ? " " + Math.floor(s % 3600 / 60) + " min" : "";
  const span = (s) => s < 60 ? Math.floor(s) + " s" : s < 3600 ? Math.floor(s / 60) + " min" : s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " days";
  setInterval(() => {
    if (paused || document.hidden) return;
    for (const t of document.querySelectorAll("time[data-ago]")) {
      const s = (Date.now() - Date.parse(t.dateTime)) / 1000;
      const words = s < -1 ? "in " + span(-s) + minutes(-s) : s < 1 ? "just now" : span(s) + " ago";
      if (t.textContent !== words) t.textContent = words;
    }
  }, 5000);
  const filled = (part) => [...part.querySelectorAll("input, textarea")].some((field) => field.value !== field.defaultValue);
  async function refresh() {
    if (busy || paused || document.hidden) { again = true; return; }
    const began = performance.now();
    if (began < rest) { timer ||= setTimeout(() => { timer = 0; refresh(); }, rest - began); return; }
    busy = true;
    again = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
      for (const old of document.querySelectorAll("[data-live]")) {
        const part = page.getElementById(old.id);
        if (part && !old.contains(document.activeElement) && !filled(old) && old.outerHTML !== part.outerHTML) old.replaceWith(document.adoptNode(part));
      }
      say("Live: updated " + new Date().toISOString().slice(11, 19) + " UTC");
    } catch {
      say("Not live: the page could not be fetched. Reload it.");
    } finally {
      busy = false;
      const now = performance.now();
      rest = now + Math.max(900, 10 * (now - began));
    }
    if (again) refresh();
  }
  const events = new EventSource("/console/events");
  events.onopen = () => { say("Live"); refresh(); }; // what has changed before is not told
  events.onerror = () => say("Not live: waiting for the gateway");
  events.onmessage = (e) => { if (kinds.includes(e.data)) refresh(); };
  document.addEventListener("visibilitychange", () => { if (!document.hidden && again) refresh(); });
  const button = document.getElementById("pause");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.setAttribute("aria-pressed", String(paused));
      button.textContent = paused ? "Resume updates" : "Pause updates";
      say(events.readyState === EventSource.OPEN ? "Live" : "Not live: waiting for the gateway");
      if (!paused && again) refresh();
    });
  }
})();
