// Shows the glossary's text beside a term: while the pointer or the focus is on it, or until Escape
// where Enter, a click or a tap asked for it. It listens to the document, so that it is set up once
// and holds for whatever a rerun of the page draws anew. The box lies in the browser's top layer.
// All terms of a page are one stop of the Tab key, from which the arrow keys lead to the others.
(() => {
  if (window.topoxTerms) return;
  window.topoxTerms = true;
  const GAP = 6, EDGE = 8, LINGER_MS = 160;
  const box = document.createElement("div");
  box.className = "term-box";
  box.setAttribute("popover", "manual");
  box.setAttribute("aria-hidden", "true"); // readers are told by the term's description
  document.body.append(box);
  let owner = null, kept = false, leaving = 0, watch = 0;

  const termAt = (target) => (target instanceof Element ? target.closest("button.term") : null);

  function place() {
    if (!owner || !owner.isConnected) return close();
    const word = owner.getBoundingClientRect();
    const below = word.bottom + GAP + box.offsetHeight + EDGE;
    const fits = below > window.innerHeight ? word.top - GAP - box.offsetHeight : word.bottom + GAP;
    const widest = document.documentElement.clientWidth - box.offsetWidth - EDGE;
    box.style.left = Math.max(EDGE, Math.min(word.left, widest)) + "px";
    box.style.top = Math.max(EDGE, fits) + "px";
  }

  function open(term, keep) {
    clearTimeout(leaving);
    const text = document.getElementById(term.getAttribute("aria-describedby"));
    if (!text) return;
    kept = keep || (kept && owner === term);
    owner = term;
    box.textContent = text.textContent;
    if (!box.matches(":popover-open")) box.showPopover();
    place();
    clearInterval(watch);
    watch = setInterval(place, 200);
  }

  function close() {
    clearTimeout(leaving);
    clearInterval(watch);
    owner = null;
    kept = false;
    if (box.matches(":popover-open")) box.hidePopover();
  }

  function leave() {
    clearTimeout(leaving);
    if (owner && !kept) leaving = setTimeout(close, LINGER_MS);
  }

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const term = termAt(event.target);
    if (term) { if (!kept || term === owner) open(term, false); }
    else if (box.contains(event.target)) clearTimeout(leaving);
    else leave();
  });
  document.addEventListener("focusin", (event) => {
    const term = termAt(event.target);
    if (term) { if (term !== owner) { kept = false; open(term, false); } }
    else if (owner && !box.contains(event.target)) close();
  });
  document.addEventListener("focusout", (event) => {
    if (termAt(event.target) === owner && !owner?.matches(":hover")) leave();
  });
  document.addEventListener("click", (event) => {
    const term = termAt(event.target);
    if (term) { if (kept && term === owner) close(); else open(term, true); }
    else if (owner && !box.contains(event.target)) close();
    // The glossary opens as from the menu, which keeps the session and its choices; elsewhere the link does.
    const ask = event.target instanceof Element ? event.target.closest("a.ask") : null;
    const plain = !(event.ctrlKey || event.metaKey || event.shiftKey);
    const learn = ask && plain && document.querySelector('[data-testid="stSidebar"] a[href^="Learn"]');
    if (learn) {
      event.preventDefault();
      const address = new URL(learn.href);
      const ofTour = [...address.searchParams.keys()].filter((key) => key.startsWith("learn."));
      for (const key of ofTour) address.searchParams.delete(key);
      address.searchParams.set("view", "glossary");
      history.pushState({}, "", address);
      window.dispatchEvent(new PopStateEvent("popstate"));
    }
  });
  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && owner) { close(); event.stopPropagation(); }
    const here = termAt(document.activeElement), step = here && STEPS[event.key];
    if (event.key !== "Tab" && !step) return;
    const terms = [...document.querySelectorAll("button.term")].filter((one) => one.offsetParent);
    if (step) {
      event.preventDefault();
      terms[(terms.indexOf(here) + step + terms.length) % terms.length].focus();
      return;
    }
    // Whoever came by arrows goes on from there; else the first term behind the page's kicker is the stop.
    const stop = here ?? terms.find((one) => one.closest('[data-testid="stMain"]') && !one.closest(".kicker"));
    for (const one of terms) one.tabIndex = one === stop ? 0 : -1;
  }, true);
  document.addEventListener("scroll", () => { if (owner) place(); }, true);
  window.addEventListener("resize", () => { if (owner) place(); });
})();
