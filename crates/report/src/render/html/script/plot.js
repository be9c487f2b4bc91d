// Plots: the nearest point under the pointer, walking with the arrow keys, and zoom by drag, wheel and pinch. To zoom is to
// show a smaller box of the drawing in the whole frame; ticks are picked from the lists that came with the page.
const SVG = "http://www.w3.org/2000/svg";
const NEAR_PX = 48;
const ZOOM_MOST = 16;
const TICKS_LEAST = 4;

const made = (name, attributes, text = "") => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
};
const within = (low, value, high) => Math.max(low, Math.min(value, high));

class Plot {
  constructor(group) {
    this.group = group;
    this.svg = group.ownerSVGElement;
    const figure = group.closest("figure");
    this.plots = figure.getElementsByClassName("plot zoomed");
    this.reset = figure.querySelector(".reset");
    const ground = group.querySelector(".ground");
    const [x, y, w, h] = ["x", "y", "width", "height"].map((name) => Number(ground.getAttribute(name)));
    this.frame = { x, y, w, h };
    this.view = this.frame;
    this.ticks = group.querySelector(".ticks");
    this.firstTicks = [...this.ticks.childNodes];
    const lists = figure.querySelector(".plot[data-x]").dataset;
    const parsed = (text) => text.split("|").map((list) => list.split(";").map((tick) => {
      const end = tick.indexOf(" ");
      return { share: Number(tick.slice(0, end)), words: tick.slice(end + 1) };
    }));
    this.finer = { x: parsed(lists.x), y: parsed(lists.y) };
    const numbers = (text) => text.match(/-?[\d.]+/g).map(Number);
    this.series = [...group.querySelectorAll(".series")].map((element) => ({
      element,
      paths: [...element.querySelectorAll(".line, .band")].map((path) => ({ path, d: path.getAttribute("d") })),
      marks: [...element.querySelectorAll(".mark")].map((mark) => ({ mark, at: numbers(mark.getAttribute("transform")) })),
    }));
    this.pointers = new Map();
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "application");
    group.setAttribute("aria-label", "Points: arrow keys walk along them; + and - zoom, 0 shows all");
    this.listen();
  }

  listen() {
    const { group } = this;
    group.addEventListener("pointermove", (event) => this.move(event));
    group.addEventListener("pointerdown", (event) => this.press(event));
    group.addEventListener("pointerup", (event) => this.release(event));
    group.addEventListener("pointercancel", (event) => this.release(event));
    group.addEventListener("pointerleave", () => this.forget());
    group.addEventListener("dblclick", () => this.show(this.frame));
    group.addEventListener("keydown", (event) => this.key(event));
    group.addEventListener("blur", () => this.forget());
    // Without the key a wheel scrolls the page, as it does everywhere else, unless the plot was clicked on.
    group.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey || document.activeElement === group)) return;
      event.preventDefault();
      this.zoom(Math.exp(within(-1, event.deltaY / 300, 1)), this.place(event));
    }, { passive: false });
    this.reset.addEventListener("click", () => this.show(this.frame));
  }

  // Where an event is on the sheet.
  place(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [at.x, at.y];
  }

  // From a place of the whole drawing to where it is shown now, and back.
  shown([x, y]) {
    const { frame, view } = this;
    return [frame.x + ((x - view.x) / view.w) * frame.w, frame.y + ((y - view.y) / view.h) * frame.h];
  }
  whole([x, y]) {
    const { frame, view } = this;
    return [view.x + ((x - frame.x) / frame.w) * view.w, view.y + ((y - frame.y) / frame.h) * view.h];
  }
  isWithin([x, y]) {
    const { x: left, y: top, w, h } = this.view;
    return x > left - 0.1 && x < left + w + 0.1 && y > top - 0.1 && y < top + h + 0.1;
  }
  visible() { return this.series.filter(({ element, marks }) => marks.length && !element.classList.contains("off")); }

  move(event) {
    const before = this.spread();
    if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, event);
    const pinched = this.spread();
    if (pinched) { if (pinched.far > 10) this.zoom(before.far / pinched.far, this.place(pinched)); return; }
    if (this.drag) { this.stretch(event); return; }
    const scale = this.svg.getScreenCTM().a;
    const at = this.place(event);
    let best = null;
    for (const series of this.visible()) {
      for (const point of series.marks) {
        if (!this.isWithin(point.at)) continue;
        const [x, y] = this.shown(point.at);
        const far = Math.hypot(x - at[0], y - at[1]) * scale;
        if (far < NEAR_PX && (!best || far < best.far)) best = { far, series, point };
      }
    }
    if (best) this.point(best.series, best.point); else this.forget();
  }

  // How far two fingers are apart, and the middle between them.
  spread() {
    if (this.pointers.size !== 2) return null;
    const [a, b] = [...this.pointers.values()];
    const far = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    return { far, clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 };
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
    const touches = event.pointerType === "touch";
    // A menu may take the release of another button.
    if (!touches && event.button !== 0) return;
    // The release comes here, wherever it is, and whatever is drawn anew before it.
    this.group.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event);
    if (this.pointers.size === 2) { this.drag = null; return; }
    if (touches) { this.move(event); return; }
    this.drag = { from: this.place(event), view: this.view, pans: event.shiftKey, band: made("rect", { class: "band c0" }) };
  }

  // The box between where the drag began and a place, within the frame.
  box(to) {
    const { x, y, w, h } = this.frame;
    const inside = ([across, down]) => [within(x, across, x + w), within(y, down, y + h)];
    const [a, b] = [inside(this.drag.from), inside(to)];
    return { x: Math.min(a[0], b[0]), y: Math.min(a[1], b[1]), w: Math.abs(a[0] - b[0]), h: Math.abs(a[1] - b[1]) };
  }

  stretch(event) {
    const { from, view, pans, band } = this.drag;
    const to = this.place(event);
    if (pans) {
      const across = ((from[0] - to[0]) / this.frame.w) * view.w;
      const down = ((from[1] - to[1]) / this.frame.h) * view.h;
      this.show({ ...view, x: view.x + across, y: view.y + down });
      return;
    }
    this.forget();
    const { x, y, w, h } = this.box(to);
    Object.entries({ x, y, width: w, height: h }).forEach(([name, value]) => band.setAttribute(name, value));
    if (!band.isConnected) this.group.append(band);
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    if (!this.drag) return;
    const { pans, band } = this.drag;
    const { x, y, w, h } = this.box(this.place(event));
    this.drag = null;
    band.remove();
    // A click is no drag.
    if (pans || event.type === "pointercancel" || w < 0.02 * this.frame.w || h < 0.02 * this.frame.h) return;
    const [[left, top], [right, bottom]] = [this.whole([x, y]), this.whole([x + w, y + h])];
    this.show({ x: left, y: top, w: right - left, h: bottom - top });
  }

  // Shows more (factor above 1) or less of the plot; the place stays where it is.
  zoom(factor, place) {
    const { view } = this;
    const [x, y] = this.whole(place);
    this.show({ x: x - (x - view.x) * factor, y: y - (y - view.y) * factor, w: view.w * factor, h: view.h * factor });
  }

  show({ x, y, w, h }) {
    const { frame } = this;
    const size = (asked, all) => within(all / ZOOM_MOST, asked, all);
    const [wide, high] = [size(w, frame.w), size(h, frame.h)];
    const left = within(frame.x, x + (w - wide) / 2, frame.x + frame.w - wide);
    const top = within(frame.y, y + (h - high) / 2, frame.y + frame.h - high);
    this.view = { x: left, y: top, w: wide, h: high };
    const zoomed = wide < frame.w || high < frame.h;
    this.group.classList.toggle("zoomed", zoomed);
    this.reset.hidden = this.plots.length === 0;
    this.forget();
    const text = (place) => this.shown(place).map((value) => value.toFixed(1)).join(" ");
    for (const { paths, marks } of this.series) {
      for (const { path, d } of paths) path.setAttribute("d", d.replace(/(-?[\d.]+) (-?[\d.]+)/g, (_, a, b) => text([a, b])));
      for (const { mark, at } of marks) mark.setAttribute("transform", `translate(${text(at)})`);
    }
    this.ticks.replaceChildren(...this.firstTicks);
    if (zoomed) this.drawTicks();
  }

  // The coarsest list of which enough is to be seen.
  inView(lists, isSeen) {
    const seen = lists.map((list) => list.filter(isSeen));
    return seen.find((list) => list.length >= TICKS_LEAST) ?? seen.at(-1);
  }

  drawTicks() {
    const { x: left, y: top, w, h } = this.frame;
    const [right, bottom] = [left + w, top + h];
    const x = ({ share }) => this.shown([left + share * w, 0])[0];
    const y = ({ share }) => this.shown([0, bottom - share * h])[1];
    const across = this.inView(this.finer.x, (tick) => x(tick) >= left && x(tick) <= right);
    const up = this.inView(this.finer.y, (tick) => y(tick) >= top && y(tick) <= bottom);
    const line = (ends) => made("line", { class: "gridline", ...ends });
    const below = across.map((tick) => made("text", { class: "quiet middle", x: x(tick), y: bottom + 17 }, tick.words));
    const beside = up.map((tick) => made("text", { class: "quiet end", x: left - 8, y: Math.min(y(tick) + 4, bottom + 2) }, tick.words));
    this.ticks.replaceChildren(
      ...up.map((tick) => line({ x1: left, x2: right, y1: y(tick), y2: y(tick) })),
      ...across.map((tick) => line({ x1: x(tick), x2: x(tick), y1: top, y2: bottom })),
      made("line", { class: "axisline", x1: left, x2: right, y1: bottom, y2: bottom }),
      ...beside,
      ...below,
    );
    this.keepApart(below, beside);
  }

  // Within the sheet, and none touching another: as the page's first drawing has them (canvas.rs).
  keepApart(below, beside) {
    let free = Infinity;
    for (const label of below.reverse()) {
      const half = label.getComputedTextLength() / 2;
      const x = within(half, Number(label.getAttribute("x")), this.svg.viewBox.baseVal.width - half);
      label.setAttribute("x", x);
      if (x + half > free) label.remove(); else free = x - half - 6;
    }
    let lowest = Infinity;
    for (const label of beside) {
      const y = Number(label.getAttribute("y"));
      if (lowest - y < 14) label.remove(); else lowest = y;
    }
  }

  key(event) {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const { x, y, w, h } = this.frame;
    const middle = [x + w / 2, y + h / 2];
    if (event.key in steps) this.walk(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(0.7, middle);
    else if (event.key === "-") this.zoom(1 / 0.7, middle);
    else if (event.key === "0" || event.key === "Escape") this.show(this.frame);
    else return;
    event.preventDefault();
  }

  // Along a line to its next point, or to the next line of the legend at about the same place.
  walk(along, lines) {
    const visible = this.visible();
    if (!visible.length) return;
    if (!this.current) { this.point(visible[0], visible[0].marks[0]); return; }
    const { series, point } = this.current;
    if (along) {
      const at = within(0, series.marks.indexOf(point) + along, series.marks.length - 1);
      this.point(series, series.marks[at]);
      return;
    }
    const next = visible[(visible.indexOf(series) + lines + visible.length) % visible.length];
    const away = (other) => Math.abs(other.at[0] - point.at[0]);
    this.point(next, next.marks.reduce((best, other) => (away(other) < away(best) ? other : best)));
  }
}

for (const group of document.querySelectorAll(".plot")) new Plot(group);
