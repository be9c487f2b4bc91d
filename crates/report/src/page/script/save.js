// A figure as an SVG file of its own, as it is shown: the same lines, the same part of the plot, the colours of the theme.
function standAlone(figure) {
  const svg = figure.querySelector("svg.wide").cloneNode(true);
  const title = figure.querySelector("h3").textContent;
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  svg.querySelectorAll(".off, .key[aria-pressed=false], .mark.hidden").forEach((element) => element.remove());
  svg.querySelectorAll(".at, .dim").forEach((element) => element.classList.remove("at", "dim"));
  for (const element of [svg, ...svg.querySelectorAll("*")]) {
    for (const { name } of [...element.attributes]) {
      if (/^(data-|aria-|tabindex$|role$)/.test(name)) element.removeAttribute(name);
    }
  }
  const colors = getComputedStyle(document.documentElement);
  const rules = document.getElementById("figure-style").textContent;
  const piece = (name, text) => { const made = document.createElementNS(SVG, name); made.textContent = text; return made; };
  const style = piece("style", rules.replace(/var\((--[a-z0-9]+)\)/g, (_, name) => colors.getPropertyValue(name).trim()));
  const paper = piece("rect", "");
  const heading = piece("text", title);
  const set = (element, attributes) => Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  set(paper, { class: "paper", x: -16, y: -50, width: width + 32, height: height + 66 });
  set(heading, { class: "title", x: 0, y: -20 });
  set(svg, { class: "figure", role: "img", width: width + 32, height: height + 66, viewBox: `-16 -50 ${width + 32} ${height + 66}` });
  svg.prepend(piece("title", title), style, paper, heading);
  return new XMLSerializer().serializeToString(svg);
}

function startSaving() {
  for (const button of document.querySelectorAll("button.save")) {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([standAlone(figure)], { type: "image/svg+xml" }));
      link.download = `${figure.id}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
}
