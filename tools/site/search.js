"use strict";

// What says nothing about the page that somebody looks for.
const STOP = new Set("a an and are be by can do does for from how i in is it my of on one or the there this to was what when where which who why with".split(" "));

// Pages that name everything come after those that explain it.
const LATER = /^(CHANGELOG|CONTRIBUTING|docs\/(concepts|conformance|failure-behaviour|benchmarks|design|generated\/))/;

function stem(word) {
  return word.length > 4 ? word.replace(/(ing|ed|es|s|al)$/, "").replace(/(.)\1$/, "$1") : word.replace(/s$/, "");
}

function terms(text) {
  return text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((w) => w && !STOP.has(w)).map(stem);
}

let prepared;

function prepare(sections) {
  const known = new Map(); // in how many sections a word is
  const all = sections.map((s) => {
    const words = new Set(terms(s.w));
    const heading = new Set(terms(s.h)), page = new Set(terms(s.p + " " + s.u.replace(/#.*/, "").replace(/.*\//, "")));
    for (const w of new Set([...words, ...heading, ...page])) known.set(w, (known.get(w) || 0) + 1);
    return { s, words, heading, page };
  });
  return { all, known };
}

// search returns the best section of each page, the best first.
function search(sections, query) {
  prepared ||= prepare(sections);
  const wanted = [...new Set(terms(query))];
  const best = new Map();
  for (const e of prepared.all) {
    let score = 0, found = 0;
    for (const w of wanted) {
      const rare = Math.log(1 + prepared.all.length / (prepared.known.get(w) || prepared.all.length));
      let here = e.words.has(w) ? 1 / Math.log2(8 + e.words.size / 8) : 0;
      if (e.heading.has(w)) here += 2 / Math.sqrt(e.heading.size);
      if (e.page.has(w)) here += 2 / Math.sqrt(e.page.size);
      if (here) found++;
      score += rare * here;
    }
    if (!found) continue;
    score *= (found / wanted.length) ** 2 * (LATER.test(e.s.u) ? 0.3 : 1);
    const page = e.s.u.replace(/#.*/, "");
    if (!(best.get(page)?.score >= score)) best.set(page, { ...e.s, score });
  }
  return [...best.values()].sort((a, b) => b.score - a.score);
}

if (typeof document === "undefined") {
  module.exports = search;
} else {
  const box = document.getElementById("query"), list = document.getElementById("results"), top = document.body.dataset.top;
  const show = () => {
    const hits = box.value.trim() ? search(sections, box.value).slice(0, 8) : [];
    list.replaceChildren(...hits.map((hit) => {
      const item = document.createElement("li"), a = document.createElement("a"), p = document.createElement("p");
      a.href = top + hit.u;
      a.textContent = hit.h === hit.p ? hit.p : hit.p + " – " + hit.h;
      p.textContent = hit.b;
      item.append(a, p);
      return item;
    }));
    if (box.value.trim() && !hits.length) list.append("Nothing matches.");
    list.hidden = !list.hasChildNodes();
  };
  box.addEventListener("input", show);
  box.form.addEventListener("submit", (e) => {
    e.preventDefault();
    list.querySelector("a")?.click();
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && document.activeElement !== box) { e.preventDefault(); box.focus(); }
    if (e.key === "Escape" && document.activeElement === box) { box.value = ""; show(); }
  });
  if (matchMedia("(max-width: 45rem)").matches) document.querySelector("nav details").open = false;
}
