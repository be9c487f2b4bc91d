// Values on axes, as the page was made with them: the writing of a tick, and where ticks stand.
const UNITS = {
  bytes: { step: 1024, names: [" B", " KiB", " MiB", " GiB", " TiB"] },
  bytes_per_s: { step: 1000, names: [" B/s", " kB/s", " MB/s", " GB/s", " TB/s"] },
  ns: { step: 1000, names: [" ns", " µs", " ms", " s"] },
  seconds: { step: 1000, names: [" ns", " µs", " ms", " s"], factor: 1e9 },
  count: { step: 1000, names: ["", " k", " M", " G"] },
  ratio: { step: Infinity, names: ["×"] },
};

function tickText(writing, value) {
  if (writing === "percentile") return `${+(100 - 100 / value).toPrecision(12)} %`;
  const unit = UNITS[writing];
  let scaled = value * (unit.factor ?? 1);
  let at = 0;
  while (Math.abs(scaled) >= unit.step * 0.9999 && at + 1 < unit.names.length) { scaled /= unit.step; at += 1; }
  return `${+scaled.toPrecision(3)}${value === 0 ? "" : unit.names[at]}`;
}

// From an axis' values to shares of its length, and back.
function axisOf(text) {
  const [writing, scale, low, high] = text.split(" ");
  const [from, to] = scale === "log" ? [Math.log(+low), Math.log(+high)] : [+low, +high];
  return {
    writing,
    isLog: scale === "log",
    value: (share) => { const at = from + share * (to - from); return scale === "log" ? Math.exp(at) : at; },
    share: (value) => ((scale === "log" ? Math.log(value) : value) - from) / (to - from),
  };
}

// Values between two others at which a tick stands, about so many.
function ticksBetween(axis, low, high, about) {
  if (axis.writing === "percentile") return percentiles(low, high);
  const base = axis.writing === "bytes" ? 2 : 10;
  const powers = axis.isLog ? (Math.log(high) - Math.log(low)) / Math.log(base) : 0;
  if (powers >= (base === 2 ? 2 : 2.5)) {
    const step = Math.max(1, Math.ceil(powers / about));
    const first = Math.ceil(Math.log(low) / Math.log(base) / step - 1e-9) * step;
    const ticks = [];
    for (let power = first; base ** power <= high * 1.000001; power += step) ticks.push(base ** power);
    return ticks;
  }
  const step = roundStep((high - low) / about, base);
  const ticks = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high * 1.000001; count += 1) ticks.push(count * step);
  return ticks;
}

function percentiles(low, high) {
  const nines = [0, 1, 2, 3, 4, 5, 6, 7].map((count) => 10 ** count);
  return [...nines, 2].filter((rarity) => rarity >= low * 0.999999 && rarity <= high).sort((a, b) => a - b);
}

function roundStep(step, base) {
  if (base === 2) return 2 ** Math.ceil(Math.log2(step));
  const power = 10 ** Math.floor(Math.log10(step));
  return (([1, 2, 5].find((digit) => digit * power >= step * 0.999)) ?? 10) * power;
}
