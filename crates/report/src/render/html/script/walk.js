// Rankings, matrices and pipelines: one stop of the tab key each, and the arrow keys from row to row, or cell to cell.
for (const chart of document.querySelectorAll("svg.figure")) {
  const stops = [...chart.querySelectorAll(".row, .cell, .stage")];
  const top = (stop) => stop.querySelector("rect").getAttribute("y");
  const columns = stops.filter((stop) => top(stop) === top(stops[0])).length;
  for (const [at, stop] of stops.entries()) {
    stop.setAttribute("tabindex", at ? "-1" : "0");
    stop.setAttribute("role", "img");
    stop.setAttribute("aria-label", stop.dataset.tip.replaceAll("\n", ", "));
  }
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    const from = stops.indexOf(document.activeElement);
    const to = stops[from + step];
    if (step === undefined || from < 0 || !to) return;
    event.preventDefault();
    stops[from].setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus();
  });
}
