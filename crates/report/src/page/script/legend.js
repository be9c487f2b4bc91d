// Legends: a key switches its line off and on, a double click leaves it alone, pointing at it dims the others.
function startLegends() {
  for (const figure of document.querySelectorAll("figure:has(.legend)")) {
    const keys = [...figure.querySelectorAll(".key")];
    const names = [...new Set(keys.map((key) => key.dataset.series))];
    const isOn = (name) => keys.find((key) => key.dataset.series === name).getAttribute("aria-pressed") === "true";
    const each = (name, use) => figure.querySelectorAll(`.series[data-series="${name}"]`).forEach(use);
    const set = (name, on) => {
      keys.filter((key) => key.dataset.series === name).forEach((key) => key.setAttribute("aria-pressed", String(on)));
      each(name, (series) => { if (!series.closest(".legend")) series.classList.toggle("off", !on); });
    };
    const alone = (name) => {
      const already = names.every((other) => isOn(other) === (other === name));
      names.forEach((other) => set(other, already || other === name));
    };
    const dim = (name) => names.forEach((other) => each(other, (series) => {
      if (!series.closest(".legend")) series.classList.toggle("dim", name !== null && other !== name);
    }));
    for (const key of keys) {
      const name = key.dataset.series;
      key.addEventListener("click", (event) => (event.detail === 2 ? alone(name) : set(name, !isOn(name))));
      key.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        if (event.shiftKey) alone(name); else set(name, !isOn(name));
      });
      key.addEventListener("pointerenter", () => dim(name));
      key.addEventListener("pointerleave", () => dim(null));
    }
  }
}
