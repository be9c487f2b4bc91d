// A figure as an SVG file of its own, as it is shown: the same lines, the same part of the plot, the colours of the theme.
function standAlone(figure) {
  const svg = figure.querySelector("svg.wide").cloneNode(true);
  const title = figure.querySelector("h3").textContent;
  const { width, height } = figure.querySelector("svg.wide").viewBox.baseVal;
  svg.querySelectorAll(".off, .key[aria-pressed=false], .mark.hidden").forEach((element) => element.remove());
  svg.querySelectorAll(".at, .dim").forEach((element) => element.classList.remove("at", "dim"));
  for (const element of [svg, ...svg.querySelectorAll("*")]) {
    for (const { name } of [...element.attributes]) {
      if (/^(data-|aria-|tabindex$|role$)/.test(name)) element.removeAttribute(name);
    }
  }
  const colors = getComputedStyle(root);
  const rules = document.getElementById("figure-style").textContent;
  const style = rules.replace(/var\((--[a-z0-9]+)\)/g, (_, name) => colors.getPropertyValue(name).trim());
  const sheet = { x: -16, y: -50, width: width + 32, height: height + 66 };
  const attributes = { class: "figure", role: "img", width: sheet.width, height: sheet.height, viewBox: Object.values(sheet).join(" ") };
  Object.entries(attributes).forEach(([name, value]) => svg.setAttribute(name, value));
  const paper = made("rect", { class: "paper", ...sheet });
  svg.prepend(made("title", {}, title), made("style", {}, style), paper, made("text", { class: "title", x: 0, y: -20 }, title));
  return new XMLSerializer().serializeToString(svg);
}

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
