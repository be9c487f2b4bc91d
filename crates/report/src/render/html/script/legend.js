// Legends: a key switches its line off and on, a double click leaves it alone, pointing at it dims the others.
for (const figure of document.querySelectorAll("figure:has(.legend)")) {
  // The same line is in the drawings for desktops and for phones: its keys and its pieces, by its place in the legend.
  const lines = [];
  for (const drawing of figure.querySelectorAll("svg.figure")) {
    const pieces = drawing.querySelectorAll(".plot .series");
    for (const [at, key] of drawing.querySelectorAll(".key").entries()) {
      const line = lines[at] ??= { on: true, keys: [], pieces: [] };
      line.keys.push(key);
      line.pieces.push(pieces[at]);
    }
  }
  const set = (line, on) => {
    line.on = on;
    line.keys.forEach((key) => key.setAttribute("aria-pressed", String(on)));
    line.pieces.forEach((piece) => piece.classList.toggle("off", !on));
  };
  const alone = (line) => {
    const already = lines.every((other) => other.on === (other === line));
    lines.forEach((other) => set(other, already || other === line));
  };
  const dim = (line) => lines.forEach((other) => {
    other.pieces.forEach((piece) => piece.classList.toggle("dim", line !== null && other !== line));
  });
  for (const line of lines) {
    for (const key of line.keys) {
      const name = key.querySelector("text").textContent;
      const attributes = { role: "button", tabindex: "0", "aria-pressed": "true", "aria-label": `Show ${name}` };
      Object.entries(attributes).forEach(([attribute, value]) => key.setAttribute(attribute, value));
      key.addEventListener("click", (event) => (event.detail === 2 ? alone(line) : set(line, !line.on)));
      key.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        if (event.shiftKey) alone(line); else set(line, !line.on);
      });
      key.addEventListener("pointerenter", () => dim(line));
      key.addEventListener("pointerleave", () => dim(null));
    }
  }
}
