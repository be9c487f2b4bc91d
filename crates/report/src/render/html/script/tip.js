// What is said of a mark when a reader points at it or walks to it with the keyboard: its title, which a browser without
// scripts shows by itself.
const tip = {
  box: document.getElementById("tip"),

  // Shows the lines of an element's data-tip beside it, or above the pointer where it is wide: the name, the figure, what
  // else there is to say.
  show(element, pointer) {
    const piece = (line, at) => {
      const figure = at === 1 && line.length < 24 && /^[\d<≥]/.test(line);
      const made = document.createElement(at === 0 ? "b" : figure ? "strong" : "span");
      made.textContent = line;
      return made;
    };
    tip.box.replaceChildren(...element.dataset.tip.split("\n").map(piece));
    tip.box.hidden = false;
    tip.place(element.getBoundingClientRect(), pointer);
  },

  // Above what is pointed at, or below where there is no room; never outside the window.
  place(target, pointer) {
    const size = tip.box.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const middle = pointer?.clientX ?? target.left + target.width / 2;
    const left = Math.max(8, Math.min(middle - size.width / 2, wide - size.width - 8));
    const above = target.top - size.height - 10;
    const top = above > 4 ? above : target.bottom + 10;
    tip.box.style.transform = `translate(${Math.round(left)}px,${Math.round(top)}px)`;
  },

  hide() { tip.box.hidden = true; },
};

for (const title of document.querySelectorAll("svg.figure title")) {
  const mark = title.parentElement;
  mark.dataset.tip = title.textContent;
  title.remove();
}

// Rows, cells, stages and links have their tips by themselves; points of a plot are found by the plot.
const withTip = (target) => (target instanceof Element ? target.closest("[data-tip]:not(.mark)") : null);
for (const event of ["pointerover", "focusin"]) {
  document.addEventListener(event, (happened) => {
    const found = withTip(happened.target);
    if (found) tip.show(found, happened);
  });
}
for (const event of ["pointerout", "focusout"]) {
  document.addEventListener(event, ({ target }) => { if (withTip(target)) tip.hide(); });
}
document.addEventListener("scroll", tip.hide, { passive: true });
document.addEventListener("keydown", ({ key }) => { if (key === "Escape") tip.hide(); });
