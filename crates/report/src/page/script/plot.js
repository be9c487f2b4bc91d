// Plots: the nearest point under the pointer, walking with the arrow keys, and zoom by drag, wheel and pinch. Each mark
// carries its place as shares of the frame, so that zooming is to show another part of 0 to 1.
const SVG = "http://www.w3.org/2000/svg";
const WHOLE = { x0: 0, x1: 1, y0: 0, y1: 1 };
const NEAR_PX = 48;

class Plot {
  constructor(group) {
    this.group = group;
    this.svg = group.ownerSVGElement;
    this.reset = group.closest("figure").querySelector(".reset");
    [this.left, this.top, this.width, this.height] = group.dataset.frame.split(" ").map(Number);
    this.axes = { x: axisOf(group.dataset.x), y: axisOf(group.dataset.y) };
    this.tickTexts = { x: group.querySelectorAll(".ticks .middle").length, y: group.querySelectorAll(".ticks .end").length };
    this.series = [...group.querySelectorAll(".series")].map((element) => ({
      element,
      line: element.querySelector(".line"),
      band: element.querySelector(".band"),
      marks: [...element.querySelectorAll(".mark")].map((mark) => ({ mark, at: mark.dataset.at.split(" ").map(Number) })),
    }));
    this.view = { ...WHOLE };
    this.pointers = new Map();
    this.listen();
  }

  listen() {
    const { group } = this;
    group.addEventListener("pointermove", (event) => this.move(event));
    group.addEventListener("pointerdown", (event) => this.press(event));
    group.addEventListener("pointerup", (event) => this.release(event));
    group.addEventListener("pointercancel", (event) => this.release(event));
    group.addEventListener("pointerleave", () => this.forget());
    group.addEventListener("dblclick", () => this.show(WHOLE));
    group.addEventListener("keydown", (event) => this.key(event));
    group.addEventListener("blur", () => this.forget());
    // Without the key a wheel scrolls the page, as it does everywhere else, unless the plot was clicked on.
    group.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey || document.activeElement === group)) return;
      event.preventDefault();
      this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), this.place(event));
    }, { passive: false });
    this.reset.addEventListener("click", () => this.show(WHOLE));
  }

  // Where an event is, as shares of the frame.
  place(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return { across: (at.x - this.left) / this.width, up: 1 - (at.y - this.top) / this.height };
  }

  x(share) { return this.left + ((share - this.view.x0) / (this.view.x1 - this.view.x0)) * this.width; }
  y(share) { return this.top + (1 - (share - this.view.y0) / (this.view.y1 - this.view.y0)) * this.height; }
  isWithin([across, up]) {
    const { x0, x1, y0, y1 } = this.view;
    return across >= x0 - 1e-6 && across <= x1 + 1e-6 && up >= y0 - 1e-6 && up <= y1 + 1e-6;
  }
  visible() { return this.series.filter((series) => !series.element.classList.contains("off")); }

  move(event) {
    if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, event);
    if (this.pointers.size === 2) { this.pinch(); return; }
    if (this.drag) { this.stretch(event); return; }
    const scale = this.svg.getScreenCTM().a;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    let best = null;
    for (const series of this.visible()) {
      for (const point of series.marks) {
        if (!this.isWithin(point.at)) continue;
        const far = Math.hypot(this.x(point.at[0]) - at.x, this.y(point.at[1]) - at.y) * scale;
        if (far < NEAR_PX && (!best || far < best.far)) best = { far, series, point };
      }
    }
    if (best) this.point(best.series, best.point); else this.forget();
  }

  point(series, point) {
    if (this.current?.point !== point) {
      this.forget();
      this.current = { series, point };
      point.mark.classList.add("at");
    }
    tip.show(point.mark);
  }

  forget() {
    this.current?.point.mark.classList.remove("at");
    if (this.current) tip.hide();
    this.current = null;
  }

  press(event) {
    this.group.focus({ preventScroll: true });
    this.pointers.set(event.pointerId, event);
    if (this.pointers.size === 2) { this.drag = null; this.startPinch(); return; }
    if (event.pointerType === "touch") { this.move(event); return; }
    if (event.button !== 0) return;
    this.group.setPointerCapture(event.pointerId);
    this.drag = { from: this.place(event), view: { ...this.view }, pans: event.shiftKey, band: document.createElementNS(SVG, "rect") };
    this.drag.band.setAttribute("class", "band c0");
  }

  stretch(event) {
    const { from, view, pans, band } = this.drag;
    const to = this.place(event);
    if (pans) {
      const across = (from.across - to.across) * (view.x1 - view.x0);
      const up = (from.up - to.up) * (view.y1 - view.y0);
      this.show({ x0: view.x0 + across, x1: view.x1 + across, y0: view.y0 + up, y1: view.y1 + up });
      return;
    }
    this.forget();
    const box = Plot.box(from, to);
    const set = (name, value) => band.setAttribute(name, value);
    set("x", this.left + box.x0 * this.width);
    set("y", this.top + (1 - box.y1) * this.height);
    set("width", (box.x1 - box.x0) * this.width);
    set("height", (box.y1 - box.y0) * this.height);
    if (!band.isConnected) this.group.append(band);
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    if (this.pointers.size < 2) this.pinched = null;
    if (!this.drag) return;
    const { from, pans, band } = this.drag;
    this.drag = null;
    band.remove();
    const box = Plot.box(from, this.place(event));
    // A click is no drag.
    if (pans || event.type === "pointercancel" || box.x1 - box.x0 < 0.02 || box.y1 - box.y0 < 0.02) return;
    const { x0, x1, y0, y1 } = this.view;
    const [wide, high] = [x1 - x0, y1 - y0];
    this.show({ x0: x0 + box.x0 * wide, x1: x0 + box.x1 * wide, y0: y0 + box.y0 * high, y1: y0 + box.y1 * high });
  }

  static box(a, b) {
    const within = (share) => Math.max(0, Math.min(1, share));
    const [x, y] = [[a.across, b.across].map(within), [a.up, b.up].map(within)];
    return { x0: Math.min(...x), x1: Math.max(...x), y0: Math.min(...y), y1: Math.max(...y) };
  }

  startPinch() {
    const [a, b] = [...this.pointers.values()];
    this.pinched = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  }

  pinch() {
    const [a, b] = [...this.pointers.values()];
    const far = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    if (!this.pinched || far < 10) return;
    const middle = { clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 };
    this.zoom(this.pinched / far, this.place(middle));
    this.pinched = far;
  }

  // Shows more (factor above 1) or less of the plot; the place stays where it is.
  zoom(factor, { across, up }) {
    const { x0, x1, y0, y1 } = this.view;
    const stretch = (low, high, share) => {
      const fixed = low + (high - low) * share;
      return [fixed - (fixed - low) * factor, fixed + (high - fixed) * factor];
    };
    const [x, y] = [stretch(x0, x1, across), stretch(y0, y1, up)];
    this.show(x[1] - x[0] >= 1 ? WHOLE : { x0: x[0], x1: x[1], y0: y[0], y1: y[1] });
  }

  show(view) {
    const [wide, high] = [view.x1 - view.x0, view.y1 - view.y0];
    if (wide < 1e-4 || high < 1e-4) return;
    const kept = (low, size) => Math.max(-0.25, Math.min(low, 1.25 - size));
    const [x0, y0] = [kept(view.x0, wide), kept(view.y0, high)];
    this.view = { x0, x1: x0 + wide, y0, y1: y0 + high };
    const whole = x0 === 0 && y0 === 0 && wide === 1 && high === 1;
    this.group.classList.toggle("zoomed", !whole);
    this.reset.hidden = this.group.closest("figure").querySelector(".plot.zoomed") === null;
    this.forget();
    this.draw();
  }

  draw() {
    const place = (across, up) => `${this.x(across).toFixed(1)} ${this.y(up).toFixed(1)}`;
    for (const { line, band, marks } of this.series) {
      line.setAttribute("d", marks.map(({ at }, index) => `${index ? "L" : "M"}${place(at[0], at[1])}`).join(""));
      if (band) {
        const ends = marks.map(({ at }) => at).filter((at) => at.length === 4);
        const outline = [...ends.map((at) => place(at[0], at[3])), ...ends.reverse().map((at) => place(at[0], at[2]))];
        band.setAttribute("d", `M${outline.join("L")}Z`);
      }
      for (const { mark, at } of marks) mark.setAttribute("transform", `translate(${place(at[0], at[1])})`);
    }
    this.drawTicks();
  }

  drawTicks() {
    const ticks = this.group.querySelector(".ticks");
    const made = (name, attributes, text) => {
      const element = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      if (text !== undefined) element.textContent = text;
      return element;
    };
    const [right, bottom] = [this.left + this.width, this.top + this.height];
    const { x0, x1, y0, y1 } = this.view;
    const values = (axis, low, high, about) => ticksBetween(axis, axis.value(low), axis.value(high), about);
    const [pieces, labels] = [[], []];
    for (const value of values(this.axes.y, y0, y1, 6)) {
      const y = this.y(this.axes.y.share(value));
      pieces.push(made("line", { class: "gridline", x1: this.left, x2: right, y1: y, y2: y }));
      pieces.push(made("text", { class: "quiet end", x: this.left - 8, y: y + 4 }, tickText(this.axes.y.writing, value)));
    }
    for (const value of values(this.axes.x, x0, x1, Math.max(3, this.tickTexts.x))) {
      const x = this.x(this.axes.x.share(value));
      pieces.push(made("line", { class: "gridline", x1: x, x2: x, y1: this.top, y2: bottom }));
      labels.push(made("text", { class: "quiet middle", x, y: bottom + 17 }, tickText(this.axes.x.writing, value)));
    }
    pieces.push(made("line", { class: "axisline", x1: this.left, x2: right, y1: bottom, y2: bottom }));
    ticks.replaceChildren(...pieces, ...labels);
    this.keepApart(labels);
  }

  // Within the sheet, and none touching another: as the page's first drawing has them (canvas.rs).
  keepApart(labels) {
    let free = Infinity;
    for (const label of labels.reverse()) {
      const half = label.getComputedTextLength() / 2;
      const x = Math.max(half, Math.min(Number(label.getAttribute("x")), this.svg.viewBox.baseVal.width - half));
      label.setAttribute("x", x);
      if (x + half > free) label.remove();
      else free = x - half - 6;
    }
  }

  key(event) {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const middle = { across: 0.5, up: 0.5 };
    if (event.key in steps) this.walk(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(0.7, middle);
    else if (event.key === "-") this.zoom(1 / 0.7, middle);
    else if (event.key === "0" || event.key === "Escape") this.show(WHOLE);
    else return;
    event.preventDefault();
  }

  // Along a line to its next point, or to the next line of the legend at about the same place.
  walk(along, lines) {
    const visible = this.visible().filter((series) => series.marks.length);
    if (!visible.length) return;
    if (!this.current) { this.point(visible[0], visible[0].marks[0]); return; }
    const { series, point } = this.current;
    if (along) {
      const at = Math.max(0, Math.min(series.marks.length - 1, series.marks.indexOf(point) + along));
      this.point(series, series.marks[at]);
      return;
    }
    const next = visible[(visible.indexOf(series) + lines + visible.length) % visible.length];
    const away = (other) => Math.abs(other.at[0] - point.at[0]);
    this.point(next, next.marks.reduce((best, other) => (away(other) < away(best) ? other : best)));
  }
}

function startPlots() {
  for (const group of document.querySelectorAll(".plot")) new Plot(group);
}
