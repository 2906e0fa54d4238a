(() => {
  "use strict";
  const by = (id) => document.getElementById(id);
  const all = (query) => [...document.querySelectorAll(query)];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const q = by("q"), found = by("found");
  const said = all(".said[id]"), lanes = all(".lane"), parts = all(".talk ol");
  const items = lanes.map((one) => (one.dataset.text || "").toLowerCase());
  const MOST = 300; // matches to mark
  let hits = [], at = -1, waiting = 0, texts = null;

  const unfold = (open) => {
    for (const one of all(".talk details")) one.open = open;
  };
  const go = (one) => {
    one.scrollIntoView({ block: "center", behavior: still.matches ? "instant" : "auto" });
    if (document.activeElement !== q) one.focus({ preventScroll: true }); // unless the person is typing again
  };
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

  // Matches are marked where the browser can do so without changing the page.
  const marked = (word) => {
    if (!window.Highlight) return;
    CSS.highlights.delete("found");
    if (!word) return;
    const ranges = [];
    for (const one of hits.slice(0, MOST)) {
      const walk = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        const text = walk.currentNode.data.toLowerCase();
        for (let i = text.indexOf(word); i >= 0; i = text.indexOf(word, i + word.length)) {
          if (i + word.length > walk.currentNode.length) break;
          const range = new Range();
          range.setStart(walk.currentNode, i);
          range.setEnd(walk.currentNode, i + word.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  };

  const search = () => {
    const word = q.value.trim().toLowerCase();
    const own = by("graph").checked, results = by("results").checked;
    texts ??= said.map((one) => one.textContent.toLowerCase());
    hits = [];
    at = -1;
    said.forEach((one, i) => {
      const wanted = (own || !one.classList.contains("graph"))
        && (results || !(one.classList.contains("tool") || one.classList.contains("failed")));
      one.hidden = !wanted || !texts[i].includes(word);
      if (!one.hidden) hits.push(one);
    });
    // Messages out of view keep their size, so only a few matches are laid out at once.
    for (const part of parts) part.hidden = !part.querySelector(".said:not([hidden])");
    by("talk").querySelector(".talk").classList.toggle("few", hits.length <= MOST);
    let listed = 0;
    lanes.forEach((one, i) => {
      one.hidden = !items[i].includes(word);
      listed += !one.hidden;
    });
    for (const one of hits.slice(0, MOST)) {
      for (const fold of one.querySelectorAll("details")) {
        if (word && fold.textContent.toLowerCase().includes(word)) fold.open = true;
      }
    }
    marked(word);
    found.textContent = word ? `${plural(hits.length, "message")}, ${plural(listed, "item")}` : "";
  };
  const soon = () => {
    clearTimeout(waiting);
    if (said.length > 500) waiting = setTimeout(search, 150);
    else search();
  };
  q.addEventListener("input", soon);
  by("graph").addEventListener("change", search);
  by("results").addEventListener("change", search);
  by("unfold").addEventListener("click", (event) => {
    const open = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(open));
    unfold(open);
  });
  q.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits.length) {
      clearTimeout(waiting);
      if (at < 0) search();
      at = (at + (event.shiftKey ? -1 : 1) + hits.length) % hits.length;
      hits[at].scrollIntoView({ block: "center", behavior: "instant" });
      found.textContent = `message ${at + 1} of ${hits.length}`;
    } else if (event.key === "Escape") {
      q.value = "";
      search();
    }
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      q.focus();
    }
  });

  // One tab stop for all signs; the arrow keys move between them.
  const signs = all(".moments a");
  signs.forEach((one, i) => one.addEventListener("keydown", (event) => {
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: signs.length - 1 }[event.key];
    if (to === undefined || !signs[to]) return;
    event.preventDefault();
    one.setAttribute("tabindex", "-1");
    signs[to].setAttribute("tabindex", "0");
    signs[to].focus();
  }));
  if (signs.length) {
    signs.forEach((one) => one.setAttribute("tabindex", "-1"));
    signs[0].setAttribute("tabindex", "0");
  }

  // A link into the conversation shows its message even if it is folded or hidden.
  const land = () => {
    const one = /^#m\d+$/.test(location.hash) && document.querySelector(location.hash);
    if (!one) return;
    one.hidden = one.parentElement.hidden = false;
    for (const fold of one.querySelectorAll("details")) fold.open = true;
    go(one);
  };
  addEventListener("hashchange", land);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#m']");
    if (link && link.getAttribute("href") === location.hash) land();
  });
  land();

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });
})();
