// Rankings, matrices and pipelines: one stop of the tab key each, and the arrow keys from row to row, or cell to cell.
function startWalks() {
  for (const chart of document.querySelectorAll("[data-columns]")) {
    const stops = [...chart.querySelectorAll(".row, .cell, .stage")];
    const columns = Number(chart.dataset.columns);
    if (!stops.length) continue;
    stops[0].setAttribute("tabindex", "0");
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
}
