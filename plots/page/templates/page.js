"use strict";
(async () => {
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const make = (tag, attributes = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) k === "class" ? e.className = v
    : e.setAttribute(k, v);
  e.append(...children);
  return e;
};
const draw = (tag, attributes = {}, text) => {
  const e = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
};
const fill = (select, values, label = (v) => v) => {
  const kept = select.value;
  select.replaceChildren(...values.map((v) => make("option", { value: v }, label(v))));
  if (values.includes(kept)) select.value = kept;
};
const digits = (v, n = 3) => v === null || v === undefined ? "" : v === 0 ? "0" :
  Math.abs(v) >= 1000 ? Math.round(v).toLocaleString("en") : String(Number(v.toPrecision(n)));
const milliseconds = (s) => {
  const v = 1000 * s;
  return v.toFixed(v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3);
};

// --- theme -------------------------------------------------------------------------------------
const THEMES = ["automatic", "light", "dark"];
const button = $("theme");
let theme = "automatic";
try {
  theme = localStorage.getItem("stepladder-theme") || theme;
} catch { /* a page without storage */ }
const setTheme = (name) => {
  theme = THEMES.includes(name) ? name : "automatic";
  if (theme === "automatic") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = "Theme: " + theme;
  try { localStorage.setItem("stepladder-theme", theme); } catch { /* as above */ }
};
button.hidden = false;
button.onclick = () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
setTheme(theme);

// --- anchors inside folded parts, and copying --------------------------------------------------
const unfold = () => {
  const target = location.hash.length > 1 && $(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", unfold);
const copyText = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* an old way for file:// */ }
  const area = make("textarea", { "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
};
const copyButton = (text, name) => {
  const b = make("button",
    { type: "button", class: "copy", title: text, "aria-label": "Copy the command of " + name },
    "Copy");
  b.onclick = async () => {
    b.textContent = await copyText(text) ? "Copied" : "Not copied";
    setTimeout(() => { b.textContent = "Copy"; }, 1500);
  };
  return b;
};
document.querySelectorAll(".commands li").forEach((li) =>
  li.append(" ", copyButton(li.textContent, "this line")));

// --- data: JSON, compressed (gzip) and in base64 ------------------------------------------------
const main = $("main");
main.setAttribute("aria-busy", "true");
const unpack = async (id) => {
  if (!$(id)) return null;
  const bytes = Uint8Array.from(atob($(id).textContent), (c) => c.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).json();
};
unfold();
if (!("DecompressionStream" in window)) return main.removeAttribute("aria-busy");
document.querySelectorAll(".no-script").forEach((e) => e.remove());

// --- swap a rung -------------------------------------------------------------------------------
const swapper = await unpack("swap-data");
if (swapper) {
  const network = $("s-network"), threads = $("s-threads"), use = $("s-use");
  const place = () => swapper.networks[network.value][threads.value];
  const overrides = { primitive: {}, layer: {} };
  const choices = (primitive, problem) => Object.entries(place().alone[primitive] || {})
    .filter(([, times]) => !problem || problem in times).map(([name]) => name);

  // What is chosen: one entry per operation with its rung, seconds, and where these come from.
  const chosen = () => {
    const p = place(), base = p.uses[use.value];
    const missing = new Set();
    const parts = p.operations.map((o, i) => {
      const rung = overrides.layer[i] || (o.primitive && overrides.primitive[o.primitive]);
      const seconds = rung && p.alone[o.primitive]?.[rung]?.[o.problem];
      if (rung && seconds === undefined) missing.add(`${o.layer} (${o.phase})`);
      return seconds === undefined || !rung
        ? { ...o, i, rung: base.variants[i], seconds: base.seconds[i], alone: false }
        : { ...o, i, rung, seconds, alone: true };
    });
    const swapped = Object.entries(overrides.primitive).filter(([, v]) => v);
    const layers = Object.keys(overrides.layer).length;
    const name = [use.value, ...swapped.map(([k, v]) => `${k}=${v}`)].join(",");
    const measured = layers ? undefined : swapped.length === 1
      ? p.uses[name] || p.uses[[use.value,
        `${swapped[0][0]}=${swapped[0][1].replace(/_(sse42|avx2|avx512)$/, "")}`].join(",")]
      : swapped.length ? undefined : base;
    if (measured) parts.forEach((o) => {
      o.seconds = measured.seconds[o.i];
      o.rung = measured.variants[o.i];
      o.alone = false;
    });
    const outside = Math.max(0, base.total - base.seconds.reduce((a, b) => a + b, 0));
    const total = measured ? measured.total : parts.reduce((a, o) => a + o.seconds, outside);
    return { parts, total, outside: Math.max(0, total - parts.reduce((a, o) => a + o.seconds, 0)),
      measured: Boolean(measured), missing: [...missing], base };
  };

  const bar = (result, longest) => {
    const svg = draw("svg",
      { class: "step", width: "100%", height: 116, role: "img",
      "aria-label": `Step of ${network.value}: ${milliseconds(result.total)} ms` });
    [[result.total, longest, "to the scale of the slowest measured step", 0],
      [result.total, result.total, "enlarged: where the time goes", 58]
    ].forEach(([, scale, text, y]) => {
      svg.append(draw("text", { class: "gain", x: 0, y: y + 16 }, text));
      let start = 0;
      for (const o of [...grouped(result.parts),
        { layer: "outside the layers", phase: "other", rung: "", seconds: result.outside }]) {
        const width = 100 * o.seconds / scale;
        if (width > 0.05) {
          const g = draw("g", { class: `t-${swapper.techniques[o.rung] || "none"} p-${o.phase}` });
          g.append(draw("title", {}, `${o.layer} ${o.phase}: ${milliseconds(o.seconds)} ms`));
          g.append(draw("rect",
            { class: "part", x: start.toFixed(3) + "%", y: y + 23,
            width: Math.min(width, 100 - start).toFixed(3) + "%", height: 26 }));
          if (width > Math.max(5, 1.1 * o.layer.length)) g.append(draw("text",
            { class: "in-part", x: start.toFixed(3) + "%", dx: 4, y: y + 40 }, o.layer));
          svg.append(g);
        }
        start += width;
      }
    });
    return svg;
  };
  const grouped = (parts) => {
    const found = new Map();
    for (const o of parts) {
      const layer = o.phase === "update" ? "update" : o.layer.split(".")[0], key = layer + o.phase;
      const old = found.get(key);
      if (!old) found.set(key,
        { layer, phase: o.phase, rung: o.rung, seconds: o.seconds, most: o.seconds });
      else {
        if (o.seconds > old.most) Object.assign(old, { rung: o.rung, most: o.seconds });
        old.seconds += o.seconds;
      }
    }
    return [...found.values()];
  };

  const show = () => {
    const p = place(), result = chosen();
    const longest = Math.max(result.total, ...Object.values(p.uses).map((u) => u.total));
    const count = result.parts.filter((o) => o.alone).length;
    const out = $("s-result");
    const gain = result.total < longest ? `${digits(longest / result.total)}× as fast as the `
      + `slowest measured step on ${threads.value} ` : "";
    const how = result.measured ? "measured" : `sum of single measurements: ${count} alone, the `
      + `others inside ${use.value}`;
    out.replaceChildren(make("b", {}, milliseconds(result.total) + " ms"), " a step, ", gain,
      make("span", { class: "mark " + (result.measured ? "yes" : "no") }, how));
    const library = p.uses.vendor?.total / result.total;
    if (library && use.value !== "vendor") out.append("; ",
      make("span", { class: library < 1 ? "slower" : "faster" },
        `${library < 1 ? "slower than the libraries' step: " : ""}${digits(library)}×`),
      library < 1 ? "" : " as fast as the libraries' step");
    if (result.base.total !== result.total) {
      out.append(`; ${digits(result.total / result.base.total)}× the time of ${use.value}`);
    }
    if (result.missing.length) {
      out.append(`. No time of the chosen rung, so as in ${use.value}: `
        + result.missing.slice(0, 4).join(", ") + (result.missing.length > 4 ? " and more" : ""));
    }
    $("s-bar").replaceChildren(bar(result, longest));
    const body = $("s-table").tBodies[0];
    body.replaceChildren(...result.parts.map((o) => {
      const rung = make("td");
      const names = o.problem ? choices(o.primitive, o.problem) : [];
      if (names.length) {
        const select = make("select", { "aria-label": `Rung of ${o.layer} ${o.phase}` });
        fill(select, ["", ...names], (v) => v || `as chosen above (${o.rung})`);
        select.value = overrides.layer[o.i] || "";
        select.onchange = () => {
          if (select.value) overrides.layer[o.i] = select.value; else delete overrides.layer[o.i];
          show();
          body.rows[o.i].querySelector("select")?.focus();
        };
        rung.append(select);
      } else rung.append(o.rung);
      return make("tr", {}, make("th", { scope: "row" }, o.layer), make("td", {}, o.phase), rung,
        make("td", { class: "n" }, milliseconds(o.seconds)),
        make("td", { class: "n" }, (100 * o.seconds / result.total).toFixed(1) + " %"),
        make("td", {}, o.alone ? "alone" : "inside the step"));
    }));
  };
  const primitives = () => {
    overrides.layer = {};
    const p = place();
    const names = [...new Set(p.operations.map((o) => o.primitive).filter((n) => n && p.alone[n]))];
    for (const name of Object.keys(overrides.primitive)) {
      if (!names.includes(name)) delete overrides.primitive[name];
    }
    $("s-primitives").replaceChildren(...names.map((name) => {
      const select = make("select", { "data-primitive": name });
      fill(select, ["", ...choices(name)], (v) => v || "as in " + use.value);
      const chosen = overrides.primitive[name];
      if (chosen && choices(name).includes(chosen)) select.value = chosen;
      else delete overrides.primitive[name];
      select.onchange = () => {
        if (select.value) overrides.primitive[name] = select.value;
        else delete overrides.primitive[name];
        show();
      };
      return make("label", {}, name, select);
    }));
    show();
  };
  const uses = () => {
    const names = Object.keys(place().uses), kept = use.value;
    fill(use, names);
    if (!names.includes(kept) && names.includes("best")) use.value = "best";
    primitives();
  };
  network.onchange = () => {
    const names = Object.keys(swapper.networks[network.value]), kept = threads.value;
    fill(threads, names);
    if (!names.includes(kept)) threads.value = names[names.length - 1];
    uses();
  };
  threads.onchange = uses;
  use.onchange = primitives;
  fill(network, Object.keys(swapper.networks));
  $("swapper").hidden = false;
  network.onchange();
}

// --- all rows ----------------------------------------------------------------------------------
const rows = await unpack("rows-data");
if (rows) {
  const columns = rows.columns, PAGE = 50;
  const text = (name, i) => columns[name] ? rows.texts[name][columns[name][i]] : "";
  const value = (name, i) => columns[name] ? columns[name][i] : null;
  const on = (i) => text("device", i) && text("device", i) !== "cpu" ? text("device", i)
    : value("ranks", i) > 1 ? `${value("ranks", i)} ranks`
      : `${value("threads", i)} thread${value("threads", i) > 1 ? "s" : ""}`;
  const command = (i) => {
    const c = columns.command[i];
    if (c !== 1) return c || "";
    return (value("ranks", i) > 1 ? `mpirun -np ${value("ranks", i)} ` : "")
      + `build/stepladder bench ${text("primitive", i)} --variant ${text("variant", i)} `
      + `--suite ${text("suite", i)} --problem ${text("problem", i)} `
      + `--direction ${text("direction", i)} --threads ${value("threads", i)}`;
  };
  const micro = (s) => s === null ? "" : digits(1e6 * s, 4);
  const spread = (i) => value("ci_low_s", i) === null ? ""
    : `${micro(value("ci_low_s", i))} to ${micro(value("ci_high_s", i))}`;
  // Label, text of a cell, key to sort by, and whether it is a number.
  const TABLE = [
    ["rung", (i) => text("variant", i)],
    ["µs", (i) => micro(value("median_s", i)), (i) => value("median_s", i), true],
    ["place", (i) => value("rank", i) === null ? "" : value("rank", i)
      + (value("tie", i) ? " =" : ""), (i) => value("rank", i), true],
    ["primitive", (i) => text("primitive", i)], ["direction", (i) => text("direction", i)],
    ["problem", (i) => text("problem", i)],
    ["on", on, (i) => value("threads", i) + 1000 * value("ranks", i), true],
    ["95 % interval, µs", spread, (i) => value("ci_low_s", i), true],
    ["GFLOP/s", (i) => digits(value("gflops_per_s", i), 4), (i) => value("gflops_per_s", i), true],
    ["GB/s", (i) => digits(value("gbytes_per_s", i), 4), (i) => value("gbytes_per_s", i), true],
    ["% of roof", (i) => digits(value("percent_of_roof", i)), (i) => value("percent_of_roof", i),
      true],
    ["over serial", (i) => digits(value("speedup_vs_serial", i)),
      (i) => value("speedup_vs_serial", i), true],
    ["over library", (i) => digits(value("speedup_vs_vendor", i)),
      (i) => value("speedup_vs_vendor", i), true],
    ...(columns.verdict
      ? [["new / base", (i) => digits(value("ratio", i)), (i) => value("ratio", i), true],
      ["verdict", (i) => value("verdict", i)]] : []),
    ["status", (i) => text("status", i)],
    ["remark", (i) => [text("marked", i), text("reason", i)].filter(Boolean).join("; ")],
  ];
  const filters = [...document.querySelectorAll("[data-filter]")];
  const haystack = Array.from({ length: rows.count },
    (_, i) => ["primitive", "direction", "variant", "technique", "problem", "shape", "suite",
    "precision", "reason", "status"].map((n) => text(n, i)).join(" ").toLowerCase());
  const of = (name, i) => name === "threads" ? String(value("threads", i)) : text(name, i);
  let sorted = { column: -1, down: false }, page = 0, visible = [];

  const matches = (i, except) =>
    filters.every((f) => f === except || !f.value || of(f.dataset.filter, i) === f.value);
  const words = () => $("e-text").value.toLowerCase().split(/\s+/).filter(Boolean);
  // Measured rows first, the fastest of their problems before the others.
  const rank = (i) => text("status", i) === "ok" ? value("rank", i) ?? 1e6 : 1e7;
  const every = Array.from({ length: rows.count }, (_, i) => i)
    .sort((a, b) => rank(a) - rank(b) || a - b);
  // The view in the address, so that it can be shared: #rows:primitive=matmul&sort=1
  const STATE = "#rows:";
  const saveState = () => {
    const state = new URLSearchParams();
    for (const f of filters) if (f.value) state.set(f.dataset.filter, f.value);
    if ($("e-text").value) state.set("text", $("e-text").value);
    if (sorted.column >= 0) state.set("sort", (sorted.down ? "-" : "") + sorted.column);
    if (!state.size && !location.hash.startsWith(STATE)) return;
    history.replaceState(null, "", state.size ? STATE + state : "#explorer");
  };
  const loadState = () => {
    if (!location.hash.startsWith(STATE)) return;
    const state = new URLSearchParams(location.hash.slice(STATE.length));
    for (const f of filters) f.value = "";
    $("e-text").value = state.get("text") ?? "";
    choose(false); // so that the filters offer all
    for (const f of filters) f.value = state.get(f.dataset.filter) ?? "";
    const sort = state.get("sort") ?? "";
    const column = Math.abs(parseInt(sort, 10));
    if (column < TABLE.length) sorted = { column, down: sort.startsWith("-") };
    choose();
    $("explorer").scrollIntoView();
  };
  const choose = (saves = true) => {
    // A filter offers what the others leave.
    for (const f of filters) {
      const left = new Set(every.filter((i) => matches(i, f)).map((i) => of(f.dataset.filter, i)));
      if (f.value) left.add(f.value);
      left.delete("");
      fill(f, ["", ...[...left].sort((a, b) => f.dataset.filter === "threads" ? a - b : 0)],
        (v) => v || "all");
    }
    const wanted = words();
    visible = every.filter((i) => matches(i) && wanted.every((w) => haystack[i].includes(w)));
    if (sorted.column >= 0) {
      const [, cell, key] = TABLE[sorted.column], by = key || cell, sign = sorted.down ? -1 : 1;
      const keys = new Map(visible.map((i) => [i, by(i)]));
      const empty = (k) => k === null || k === "" || k === undefined;
      visible.sort((a, b) => {
        const x = keys.get(a), y = keys.get(b);
        if (empty(x) || empty(y)) return empty(x) - empty(y) || a - b;
        return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en"))
          || a - b;
      });
    }
    page = 0;
    show();
    chart();
    if (saves) saveState();
  };
  const head = $("e-table").tHead.insertRow();
  TABLE.forEach(([label, , , number], c) => {
    const sort = make("button", { type: "button", class: "sort" }, label);
    sort.onclick = () => { sorted = { column: c, down: sorted.column === c ? !sorted.down : false };
      choose(); };
    head.append(make("th", { scope: "col", class: number ? "n" : "" }, sort));
  });
  head.append(make("th", { scope: "col" }, "command"));
  const show = () => {
    [...head.cells].forEach((th, c) => {
      const order = sorted.down ? "descending" : "ascending";
      if (c === sorted.column) th.setAttribute("aria-sort", order);
      else th.removeAttribute("aria-sort");
    });
    const pages = Math.max(1, Math.ceil(visible.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    $("e-table").tBodies[0].replaceChildren(...visible.slice(page * PAGE, (page + 1) * PAGE)
      .map((i) => {
      const tr = make("tr", { "data-status": text("status", i) });
      TABLE.forEach(([label, cell, , number]) => {
        const shown = String(cell(i) ?? "");
        const td = make("td",
          { class: number ? "n" : label === "remark" && shown.length > 30 ? "why"
          : (label === "status" || label === "verdict") ? shown : "" });
        if (label === "rung") td.append(make("span", { class: `dot t-${text("technique", i)}` }),
          make("a", { href: `#rung-${text("primitive", i)}-${text("variant", i)}` }, shown));
        else td.append(shown);
        tr.append(td);
      });
      tr.append(make("td", {},
        command(i) ? copyButton(command(i), `${text("variant", i)} ${text("problem", i)}`) : ""));
      return tr;
    }));
    const failed = visible.filter((i) => text("status", i) === "failed").length;
    $("e-count").textContent = (visible.length ? `${visible.length} of ${rows.count} rows`
      : `No row matches; the run has ${rows.count}`) + (failed ? `, ${failed} failed` : "");
    $("e-page").textContent = `page ${page + 1} of ${pages}`;
    $("e-back").disabled = page === 0;
    $("e-next").disabled = page === pages - 1;
  };

  // Rate against size of the visible rows, the measured ceiling on top.
  const MEMORY = ["max_pool", "sgd_update", "all_reduce"];
  const chart = () => {
    const primitive = filters.find((f) => f.dataset.filter === "primitive").value;
    const memory = MEMORY.includes(primitive);
    const [rate, size, unit] = memory ? ["gbytes_per_s", "bytes", "GB/s"]
      : ["gflops_per_s", "flops", "GFLOP/s"];
    const points = visible.filter((i) => value(rate, i) > 0 && value(size, i) > 0);
    if (!points.length) { $("e-chart").replaceChildren(); return; }
    const width = Math.min(900, Math.max(300, $("explore").clientWidth)), height = 300, left = 54,
      right = 14, top = 20, bottom = 40;
    const threads = Math.max(...points.map((i) => value("threads", i)));
    const most = Math.max(...points.map((i) => value(rate, i)));
    const ceilings = memory ? rows.bandwidths.filter((c) => c.threads === threads)
      .map((c) => [c.level, c.value])
      : rows.peaks.filter((c) => c.threads === threads).map((c) => ["peak", c.value]);
    const above = ceilings.filter(([, v]) => v >= most).sort((a, b) => a[1] - b[1])[0];
    const high = above ? above[1] : most * 1.1,
      low = Math.min(...points.map((i) => value(rate, i))) / 1.3;
    const sizes = points.map((i) => value(size, i)), x0 = Math.min(...sizes) / 1.4,
      x1 = Math.max(...sizes) * 1.4;
    const scale = (v, a, b) => Math.log(v / a) / Math.log(b / a);
    const px = (v) => left + scale(v, x0, x1) * (width - left - right),
      py = (v) => top + (1 - scale(v, low, high)) * (height - top - bottom);
    const short = (v) => {
      for (const [s, l] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
        if (v >= s) return v / s + l;
      }
      return String(Number(v.toPrecision(2)));
    };
    const svg = draw("svg",
      { class: "chart", viewBox: `0 0 ${width} ${height}`, width, role: "img",
      "aria-label": `${unit} against size of ${points.length} rows; the ceiling is `
        + `${digits(high)} ${unit}` });
    const decades = (a, b) => {
      const found = [];
      for (let p = Math.ceil(Math.log10(a)); p <= Math.log10(b); ++p) found.push(10 ** p);
      return found;
    };
    for (const v of decades(x0, x1)) {
      svg.append(draw("path", { class: "grid", d: `M${px(v)} ${top}V${height - bottom}` }),
        draw("text", { x: px(v), y: height - bottom + 15, "text-anchor": "middle" }, short(v)));
    }
    for (const v of decades(low, high)) {
      svg.append(draw("path", { class: "grid", d: `M${left} ${py(v)}H${width - right}` }),
        draw("text", { x: left - 5, y: py(v) + 4, "text-anchor": "end" }, short(v)));
    }
    for (const [name, v] of ceilings.filter(([, v]) => v <= high && v >= low)) {
      svg.append(draw("path", { class: "guide", d: `M${left} ${py(v)}H${width - right}` }),
        draw("text", { x: width - right, y: py(v) - 4, "text-anchor": "end" },
          `${name} ${digits(v)} ${unit}, ${threads} thread${threads > 1 ? "s" : ""}`));
    }
    svg.append(draw("text",
      { class: "axis", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" },
      memory ? "bytes read and written" : "FLOPs of the problem"),
      draw("text", { class: "axis",
        transform: `translate(12 ${(top + height - bottom) / 2}) rotate(-90)`,
        "text-anchor": "middle" }, unit));
    for (const i of points) {
      const g = draw("g", { class: "t-" + text("technique", i) });
      g.append(draw("title", {},
        `${text("variant", i)}, ${text("problem", i)}, ${on(i)}: `
          + `${digits(value(rate, i))} ${unit}`),
      draw("circle", { cx: px(value(size, i)).toFixed(1), cy: py(value(rate, i)).toFixed(1),
        r: 3.5 }));
      svg.append(g);
    }
    const techniques = [...new Set(points.map((i) => text("technique", i)))];
    const legend = make("ul", { class: "legend" },
      ...techniques.map((t) =>
      make("li", {}, make("span", { class: "t-" + t }, make("i", { class: "key" })), t)));
    $("e-chart").replaceChildren(svg, legend);
  };

  filters.forEach((f) => { f.onchange = () => choose(); });
  let waiting;
  $("e-text").oninput = () => { clearTimeout(waiting); waiting = setTimeout(choose, 120); };
  $("e-back").onclick = () => { --page; show(); };
  $("e-next").onclick = () => { ++page; show(); };
  $("explore").hidden = false;
  choose(false);
  loadState();
  addEventListener("hashchange", loadState);
}
main.removeAttribute("aria-busy");
unfold(); // what was added has moved the target
})();
