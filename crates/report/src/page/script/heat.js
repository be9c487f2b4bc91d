// Matrices: one stop of the tab key each, and the arrow keys from cell to cell.
function startMatrices() {
  for (const matrix of document.querySelectorAll(".cells")) {
    const cells = [...matrix.querySelectorAll(".cell")];
    const columns = Number(matrix.dataset.columns);
    if (!cells.length) continue;
    cells[0].setAttribute("tabindex", "0");
    matrix.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
      const from = cells.indexOf(document.activeElement);
      const to = cells[from + step];
      if (step === undefined || from < 0 || !to) return;
      event.preventDefault();
      cells[from].setAttribute("tabindex", "-1");
      to.setAttribute("tabindex", "0");
      to.focus();
    });
  }
}
