/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills the sections of the page from its island of JSON. Everything from there is shown as text
 * (textContent) or is a number. */
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const results = data.results;
  const many = results.length > 1;

  /* ---- elements ---- */

  function make(tag, properties, ...children) {
    const element = document.createElement(tag);
    Object.assign(element, properties);
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  function section(name, ...children) {
    document.getElementById(name).append(...children);
  }

  /* rows: arrays of texts, or elements; `numbers`: the first column of numbers. */
  function table(caption, heads, rows, numbers = heads.length) {
    const cell = (tag, value, column) => {
      const element = make(tag, { className: column >= numbers ? "number" : "" });
      element.append(value ?? "-");
      return element;
    };
    const head = make("tr", {}, ...heads.map((name, column) => {
      const element = cell("th", name, column);
      element.scope = "col";
      return element;
    }));
    const body = rows.map((row) => make("tr", {}, ...row.map((value, column) => {
      const element = cell(column ? "td" : "th", value, column);
      if (!column) element.scope = "row";
      return element;
    })));
    const whole = make("table", { className: heads.length > 4 ? "wide" : "" },
      caption ? make("caption", {}, caption) : null, make("thead", {}, head), make("tbody", {}, ...body));
    const scroll = make("div", { className: "scroll", tabIndex: 0 }, whole);
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", caption || heads.join(", "));
    return scroll;
  }

  /* ---- numbers ---- */

  const at = (object, path) => path.split(".").reduce(
    (part, key) => (part !== null && typeof part === "object" && Object.hasOwn(part, key) ? part[key] : null), object);
  const number = (object, path) => {
    const value = at(object, path);
    return typeof value === "number" ? value : null;
  };
  const list = (value) => (Array.isArray(value) ? value : []);

  function rate(value) {
    if (value === null || !isFinite(value)) return "-";
    const digits = Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }
  const percent = (value) => (value === null ? "-" : value.toFixed(1) + "%");
  const signed = (value) => (value === null ? "-" : (value < 0 ? "" : "+") + value.toFixed(1) + "%");
  const mib = (value) => rate(value === null ? null : value / 1048576);
  function duration(seconds) {
    if (seconds === null) return "-";
    for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["us", 1e-6]])
      if (seconds >= 0.9995 * size) return rate(seconds / size) + " " + unit;
    return rate(seconds * 1e9) + " ns";
  }
  const interval = (summary, key, show) => (number(summary, key) === null ? "-"
    : show(number(summary, key + "_low95")) + " .. " + show(number(summary, key + "_high95")));
  const plain = (value) => (value === null || value === undefined ? "-"
    : typeof value === "object" ? JSON.stringify(value) : String(value));

  /* ---- the answer ---- */

  const entries = (job) => list(at(job, "entries")).filter((entry) => entry !== null && typeof entry === "object");

  function headline(job) {
    const words = at(job, "headline") || (at(job, "valid") === true ? "valid" : "INVALID: " + plain(at(job, "invalid_reason")));
    return make("p", { className: "headline " + (/^valid/.test(words) ? "valid" : "invalid") }, words);
  }

  function list_of(job, wanted) {
    const dl = make("dl", {});
    let name = "";
    for (const entry of entries(job)) {
      name = entry.name || name;
      if (!wanted(name)) continue;
      dl.append(make("dt", {}, entry.name || ""), make("dd", {}, plain(entry.text)));
    }
    return dl.childElementCount ? dl : null;
  }

  const first = ["Limit", "Feeds", "Next", "Note"];

  function sentences(job) { /* of a result without entries, of an earlier version */
    const dl = make("dl", {});
    const add = (name, text) => text && dl.append(make("dt", {}, name), make("dd", {}, plain(text)));
    add("Limit", at(job, "summary.limit_sentence"));
    for (const advice of list(at(job, "advice"))) add("Next", advice);
    return dl;
  }

  function rates(job) {
    const summary = at(job, "summary"), single = list(at(job, "runs")).length === 1;
    const rows = [["Whole run", ""], ["First epoch", "first_epoch_"], ["Later epochs", "later_epochs_"]]
      .filter(([, prefix]) => number(summary, prefix + "samples_per_s") !== null)
      .map(([name, prefix]) => [name, rate(number(summary, prefix + "samples_per_s")),
        single ? "one run" : interval(summary, prefix + "samples_per_s", rate), mib(number(summary, prefix + "record_bytes_per_s"))]);
    const coverage = number(summary, "interval_coverage") >= 0.95;
    const range = single ? "" : coverage ? "95% interval" : "lowest .. highest";
    return rows.length ? table("", ["", "samples/s", range, "MiB/s"], rows, 1) : null;
  }

  function card(result) {
    const job = result.job, summary = at(job, "summary");
    const samples = number(summary, "samples_per_s");
    return make("div", { className: "card" }, make("h3", {}, result.name), headline(job),
      samples === null ? null : make("p", {}, make("span", { className: "rate" }, rate(samples)), " samples/s, "
        + mib(number(summary, "record_bytes_per_s")) + " MiB/s"),
      list_of(job, (name) => first.includes(name)) || sentences(job),
      make("details", { open: !many }, make("summary", {}, "What was measured, and how"), rates(job),
        list_of(job, (name) => !first.includes(name))));
  }

  function answer() {
    if (many)
      section("answer", table("Median samples per second of each run, with its interval",
        ["run", "state", "samples/s", "interval", "MiB/s", "limit"],
        results.map(({ name, job }) => [name, at(job, "headline") || (at(job, "valid") === true ? "valid" : "INVALID"),
          rate(number(job, "summary.samples_per_s")), interval(at(job, "summary"), "samples_per_s", rate),
          mib(number(job, "summary.record_bytes_per_s")), plain(at(job, "summary.limit"))]), 2));
    section("answer", ...results.map(card));
  }

  /* ---- over time ---- */

  function css(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");

  /* The palette is for a white ground: black and blue are too dark for a dark one. */
  function color_of(curve) {
    const swapped = { "#000000": css("--text"), "#0072b2": "#56b4e9", "#56b4e9": "#0072b2" };
    return dark.matches && swapped[curve.color] || curve.color;
  }

  function shade(canvas, area, graph, phases) {
    for (const phase of phases) {
      const from = graph.toDomXCoord(phase.from_s), to = graph.toDomXCoord(phase.to_s);
      if (phase.color) {
        canvas.globalAlpha = dark.matches ? 0.2 : 0.55;
        canvas.fillStyle = phase.color;
        canvas.fillRect(from, area.y, to - from, area.h);
        canvas.globalAlpha = 1;
      } else {
        canvas.strokeStyle = css("--dim");
        canvas.setLineDash([2, 3]);
        canvas.beginPath();
        canvas.moveTo(from, area.y);
        canvas.lineTo(from, area.y + area.h);
        canvas.stroke();
        canvas.setLineDash([]);
        canvas.fillStyle = css("--dim");
        canvas.font = "11px sans-serif";
        if (area.w * (phase.to_s - phase.from_s) > 45 * (graph.xAxisRange()[1] - graph.xAxisRange()[0]))
          canvas.fillText(phase.name, from + 3, area.y + 11);
      }
    }
  }

  function draw_panel(parent, chart, panel, graphs) {
    const rows = [];
    for (let bin = 0; bin < panel.curves[0].values.length; bin++)
      rows.push([(bin + 0.5) * chart.step_s, ...panel.curves.map((curve) => curve.values[bin])]);
    const keys = make("div", { className: "keys" }), box = make("div", { className: "panel" });
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", panel.words);
    parent.append(make("p", { className: "panel-title" }, panel.title), keys, box);
    /* dygraphs takes labels for names of its options: these cannot be from outside. */
    const labels = panel.curves.map((curve, i) => "curve " + (i + 1));
    const series = {};
    panel.curves.forEach((curve, i) => {
      series[labels[i]] = { color: color_of(curve), strokeWidth: curve.width * 1.2, strokePattern: curve.dashed ? [6, 3] : null };
    });
    const show = (values, second) => {
      keys.replaceChildren(second === null ? "" : second.toFixed(2) + " s");
      const key = (color, name) => {
        const swatch = make("span", { className: "swatch" });
        swatch.style.backgroundColor = color;
        keys.append(make("span", { className: "key" }, swatch, name), " ");
      };
      panel.curves.forEach((curve, i) => key(color_of(curve), curve.name + (values ? ": " + rate(values[i]) : "")));
      for (const phase of chart.phases.filter((one, i, all) => one.color && all.findIndex((other) => other.name === one.name) === i))
        key(phase.color, phase.name);
    };
    show(null, null);
    let busy = false;
    const graph = new Dygraph(box, rows, {
      labels: ["seconds", ...labels], series, legend: "never", ylabel: panel.unit, xlabel: "seconds",
      gridLineColor: css("--line"), axisLineColor: css("--line"), strokeBorderWidth: 0, includeZero: true, connectSeparatedPoints: false,
      valueRange: panel.share ? [0, 101] : null, highlightCircleSize: 3, animatedZooms: false, labelsKMB: false,
      underlayCallback: (canvas, area, self) => shade(canvas, area, self, chart.phases),
      highlightCallback: (event, x, points, row) => show(panel.curves.map((curve) => curve.values[row]), x),
      unhighlightCallback: () => show(null, null),
      drawCallback: (self, initial) => {
        if (initial || busy) return;
        busy = true;
        for (const other of graphs)
          if (other !== self && other.xAxisRange().join() !== self.xAxisRange().join())
            other.updateOptions({ dateWindow: self.xAxisRange() });
        busy = false;
      },
    });
    graphs.push(graph);
  }

  function draw_charts() {
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const chart = data.charts[Number(figure.dataset.chart)];
      if (typeof Dygraph === "undefined" || !chart) continue;
      const live = make("div", { className: "live" }), graphs = [];
      figure.querySelector(".live")?.remove();
      figure.insertBefore(live, figure.querySelector("figcaption"));
      figure.classList.add("has-live");
      for (const panel of chart.panels) draw_panel(live, chart, panel, graphs);
    }
  }

  /* ---- tables ---- */

  function scaling() {
    if (!data.scaling.length) return;
    const spent = (row, key) => percent(number(results.find(({ name }) => name === row.name), "job.summary.shares." + key + "_percent"));
    section("scaling", table("Speed-up and efficiency against the fewest ranks of the same kind of scaling; shares of the time of a trainer",
      ["run", "scaling", "ranks", "nodes", "samples/s", "speed-up", "efficiency", "waits", "upload", "compute", "exchange", "limit"],
      data.scaling.map((row) => [row.name, row.kind, row.ranks, row.nodes, rate(row.samples_per_s), rate(row.speed_up) + " x", percent(row.efficiency_percent),
        spent(row, "trainer_for_batch"), spent(row, "trainer_upload"), spent(row, "trainer_compute"), spent(row, "trainer_exchange"), row.limit]), 2));
  }

  function heated(words, share) {
    const text = make("span", {}, words), color = "rgba(" + css("--heat") + "," + (0.45 * share).toFixed(3) + ")";
    text.style.boxShadow = "0 0 0 .3rem " + color;
    text.style.backgroundColor = color;
    return text;
  }

  function matrix() {
    const of = (job) => [plain(at(job, "dataset.format")), plain(at(job, "engine.shuffle") || at(job, "settings.shuffle"))];
    const unique = (values) => [...new Set(values)];
    const formats = unique(results.map(({ job }) => of(job)[0])), shuffles = unique(results.map(({ job }) => of(job)[1]));
    if (formats.length < 2 && shuffles.length < 2) return;
    const values = new Map();
    for (const { job } of results) {
      const key = of(job).join("\n"), value = number(job, "summary.samples_per_s");
      if (value !== null) values.set(key, [...(values.get(key) || []), value]);
    }
    const most = Math.max(...[...values.values()].flat());
    const cell = (format, shuffle) => {
      const found = values.get(format + "\n" + shuffle);
      if (!found) return "-";
      const sorted = [...found].sort((a, b) => a - b), middle = sorted[(sorted.length - 1) >> 1];
      return heated(rate(middle) + (found.length > 1 ? " (of " + found.length + ")" : ""), middle / most);
    };
    section("matrix", table("Samples per second, the median of several results; the stronger the colour, the faster", ["format", ...shuffles],
      formats.map((format) => [format, ...shuffles.map((shuffle) => cell(format, shuffle))]), 1));
  }

  function latency() {
    const kinds = [["all", ""], ["first", ".first_epoch"], ["later", ".later_epochs"], ["evaluation", ".evaluation"]];
    const rows = results.flatMap(({ name, job }) => kinds
      .map(([kind, path]) => [kind, "summary.read_latency" + path])
      .filter(([kind, path]) => number(job, path + ".p50_s") !== null &&
        (kind === "all" || [".later_epochs", ".evaluation"].some((other) => number(job, "summary.read_latency" + other + ".p50_s") !== null)))
      .map(([kind, path]) => [name, kind, rate(number(job, path + ".reads")),
        ...["mean_s", "p50_s", "p90_s", "p99_s", "p99_9_s", "max_s"].map((key) => duration(number(job, path + "." + key)))]));
    if (rows.length)
      section("latency", table("From submit to completion of each read", ["run", "epochs", "reads", "mean", "p50", "p90", "p99", "p99.9", "max"], rows, 2));
  }

  function track(parts) {
    const bar = make("div", { className: "track" });
    for (const [share, busy] of parts) {
      const part = make("span", { className: busy ? "busy" : "" });
      part.style.width = Math.max(0, Math.min(100, share || 0)) + "%";
      bar.append(part);
    }
    bar.setAttribute("aria-hidden", "true");
    return bar;
  }

  function stalls() {
    const rows = [];
    for (const { name, job } of results) {
      const share = (key) => number(job, "summary.shares." + key + "_percent");
      if (share("decode_busy") === null) continue;
      const add = (stage, waits, busy) => rows.push([many ? name + ": " + stage : stage,
        waits.map(([what, key]) => what + " " + percent(share(key))).join(", "), busy ? percent(share(busy)) : "-",
        track([...waits.map(([, key]) => [share(key), false]), ...(busy ? [[share(busy), true]] : [])])]);
      add("loader", [["on storage", "loader_for_storage"], ["on memory", "loader_for_memory"]], null);
      add("decode threads", [["on records", "decode_for_records"], ["on a batch", "decode_for_batch"]], "decode_busy");
      add("trainer", [["on a batch", "trainer_for_batch"], ["upload", "trainer_upload"], ["exchange", "trainer_exchange"]], "trainer_compute");
    }
    if (rows.length)
      section("stalls", table("Share of each stage's time that it waited (first colour) and worked (second)", ["stage", "stalled", "busy", ""], rows));
  }

  function cold() {
    const rows = [];
    for (const { name, job } of results)
      for (const run of list(at(job, "runs")))
        rows.push([(many ? name + ", " : "") + "run " + number(run, "run"), plain(at(run, "cold.cache_before")),
          percent(number(run, "cold.cold_residue_percent")), percent(number(run, "first_epoch_device_percent")),
          plain(at(run, "cold.method")), plain(at(run, "cold.remark") || at(run, "cold.server.cache_before"))]);
    if (rows.length)
      section("cold", table("Residency was measured before each run; bytes read from storage are counted apart from those delivered",
        ["run", "caches before", "in memory", "read from storage", "how it was measured", "remark"], rows));
  }

  function compare() {
    for (const one of data.comparisons) {
      const rows = Object.entries(one.comparison.figures).filter(([, figure]) => figure.a_median !== null && figure.b_median !== null)
        .map(([key, figure]) => [key, rate(figure.a_median), rate(figure.b_median), signed(figure.change_percent),
          figure.change_low95_percent === null ? "-" : signed(figure.change_low95_percent) + " .. " + signed(figure.change_high95_percent),
          figure.p_corrected === null ? "-" : figure.p_corrected < 0.001 ? figure.p_corrected.toExponential(0) : figure.p_corrected.toFixed(3), figure.verdict]);
      section("compare", make("h3", {}, "A: " + one.a + ", B: " + one.b),
        table("", ["figure", "A", "B", "change", "95% interval", "p", "verdict"], rows, 1), make("p", { className: "note" }, one.basis));
    }
  }

  function runs() {
    const rows = [];
    let left = 500;
    for (const { name, job } of results)
      for (const run of list(at(job, "runs")))
        for (const epoch of list(at(run, "epochs")))
          if (left-- > 0)
            rows.push([(many ? name + ", " : "") + "run " + number(run, "run"), number(epoch, "epoch"), rate(number(epoch, "samples_per_s")),
              mib(number(epoch, "record_bytes_per_s")), duration(number(epoch, "wall_s")), duration(number(epoch, "first_batch_s")),
              percent(number(epoch, "au_percent")), plain(at(epoch, "limit"))]);
    if (rows.length)
      section("runs", table("", ["run", "epoch", "samples/s", "MiB/s", "time", "first batch", "AU", "limit"], rows, 1));
    if (left < 0)
      section("runs", make("p", { className: "note" }, "More epochs are in the result files."));
  }

  const groups = ["settings", "dataset", "engine", "place"];
  const hidden = (key) => /_reason$/.test(key) || ["json", "csv", "series", "label", "against"].includes(key);

  function environment() {
    const keys = [];
    for (const group of groups)
      for (const key of new Set(results.flatMap(({ job }) => Object.keys(at(job, group) || {}))))
        if (!hidden(key)) keys.push(group + "." + key);
    const value = ({ job }, path) => plain(at(job, path));
    const differing = keys.filter((path) => new Set(results.map((result) => value(result, path))).size > 1);
    if (many)
      section("environment", differing.length
        ? table("What differs between the runs", ["", ...results.map(({ name }) => name)], differing.map((path) => [path, ...results.map((result) => value(result, path))]))
        : make("p", {}, "Settings, data set, engine and machine of all runs are the same."));
    for (const result of results)
      section("environment", make("details", {}, make("summary", {}, "All of " + result.name),
        make("p", { className: "note" }, plain(at(result.job, "started")) + "  " + plain(at(result.job, "command"))),
        table("", ["", ""], keys.map((path) => [path, value(result, path)]))));
  }

  /* ---- inferences, checkpoints and fabrics: tables of each ---- */

  function state(document) {
    const reason = at(document, "invalid_reason") || at(document, "degraded_reason");
    const word = at(document, "schema") === "iobench-net" && at(document, "verified_bytes") === null ? "NOT VERIFIED" : at(document, "valid") === false ? "INVALID" : at(document, "degraded") === true ? "DEGRADED" : "valid";
    const part = number(document, "model.bytes") / number(document, "model.full_bytes");
    const marks = [part > 0 && part < 1 ? "SCALED to 1/" + Math.round(1 / part) : "", list(at(document, "reads")).length && at(document, "settings.verify") === false ? "restores NOT verified" : "",
      at(document, "dataset.synthetic") === true ? "synthetic data" : ""].filter(Boolean);
    return make("p", { className: "headline " + (word === "valid" ? "valid" : "invalid") }, [word + (reason ? ": " + plain(reason) : ""), ...marks].join(", "));
  }

  const milliseconds = (value) => duration(value === null ? null : value / 1000);
  const share = (value) => percent(value === null ? null : 100 * value);
  const other_tables = {
    "iobench-infer": (one) => table(plain(at(one, "network")) + " on backend " + plain(at(one, "backend")),
      ["precision", "batch size", "images/s", "network alone", "median", "90%", "99%", "max", "waits", "from storage", "top-1", "top-5"],
      list(at(one, "batch_sizes")).map((row) => [plain(at(row, "precision")), plain(at(row, "batch_size")), rate(number(row, "samples_per_s")),
        rate(number(row, "network_samples_per_s")), ...["p50_ms", "p90_ms", "p99_ms", "max_ms"].map((key) => milliseconds(number(row, "latency." + key))),
        share(number(row, "wall_s") > 0 ? number(row, "wait_s") / number(row, "wall_s") : null), percent(number(row, "storage_percent")), share(number(row, "top1")), share(number(row, "top5"))]), 1),
    "iobench-checkpoint": (one) => table(plain(at(one, "model.name")) + ", " + plain(at(one, "model.ranks")) + " ranks, " + mib(number(one, "model.bytes")) + " MiB",
      ["", "checkpoint", "MB/s", "slowest rank", "median rank", "slowest is", "stall", "caches before"],
      ["write", "read"].flatMap((phase) => list(at(one, phase + "s")).slice(0, 500).map((row) => [phase, plain(at(row, "number")),
        rate(number(row, "bytes_per_s") === null ? null : number(row, "bytes_per_s") / 1e6), duration(number(row, "wall_s")), duration(number(row, "median_rank_s")),
        plain(at(row, "slowest_rank")), duration(number(row, "stall_s")), plain(at(row, "cache_before"))])), 1),
  };

  const megabytes = (value) => rate(value === null ? null : value / 1e6);
  const with_interval = (row, key, unit, show) => show(number(row, key + "_" + unit)) + " (" + show(number(row, key + "_low_" + unit)) + " .. "
    + show(number(row, key + "_high_" + unit)) + ")";

  function slow(one) {
    const suspects = list(at(one, "pairs.suspects")).map((row) =>  make("p", {}, "Slow: "
      + ["node", "rank", "from_rank", "to_rank"].filter((key) => number(row, key) !== null).map((key) => key.replace("_", " ") + " " + number(row, key)).join(", ")
      + " (" + plain(at(row, "kind")).replace("_", " ") + "): " + megabytes(number(row, "bytes_per_s")) + " MB/s, others " + megabytes(number(row, "typical_bytes_per_s"))));
    return suspects.length || at(one, "pairs") === null ? suspects : [make("p", {}, "No slow node, link or direction among the pairs.")];
  }

  function pairs(one) {
    const rows = list(at(one, "pairs.bytes_per_s")).map(list), most = Math.max(...rows.flat().map((value) => Number(value) || 0));
    if (!rows.length || rows.length > 32) return [];
    return [table("All pairs, MB/s", ["from \\ to", ...rows.map((row, i) => String(i))], rows.map((row, from) => [String(from),
      ...row.map((value) => heated(megabytes(typeof value === "number" ? value : null), (Number(value) || 0) / most))]), 1)];
  }

  function beside(one) {
    const gradients = at(one, "beside.gradients"), reads = at(one, "beside.reads");
    if (!gradients || !reads) return [];
    const fixed = (value) => (value === null ? "-" : value.toFixed(2));
    const slower = (row) => fixed(number(row, "slow_down")) + " (" + fixed(number(row, "slow_down_low95")) + " .. " + fixed(number(row, "slow_down_high95")) + ")";
    const sentences = [["Reads: cache ", "beside.reads.cache_before"], ["Storage: ", "beside.storage"], ["Doubt: ", "beside.doubt"]].filter(([, path]) => at(one, path))
      .map(([before, path]) => make("p", { className: "note" }, before + plain(at(one, path))));
    return [...sentences, table("Gradients of " + plain(at(gradients, "network")) + " and reads (" + plain(at(reads, "options")) + "), " + plain(at(one, "beside.rounds")) + " rounds",
        ["", "alone", "both at once", "slow-down"], [
          ["step", duration(number(gradients, "alone_step_s")), duration(number(gradients, "beside_step_s")), slower(gradients)],
          ["waits for gradients", percent(number(gradients, "alone_late_percent")), percent(number(gradients, "beside_late_percent")), ""],
          ["samples/s", rate(number(reads, "alone_samples_per_s")), rate(number(reads, "beside_samples_per_s")), slower(reads)]], 1),
      table("Ports, MiB, summed over the nodes", ["", "received", "sent", "difference", "asked to read", "gradients by formula"], list(at(one, "beside.stages")).map((row) => [plain(at(row, "name")),
        ...["received", "sent", "excess", "request", "expected_gradient"].map((key) => mib(number(row, key + "_bytes")))]), 1)];
  }

  other_tables["iobench-net"] = (one) => make("div", {}, ...slow(one), ...beside(one),
    table(plain(at(one, "transport")) + "; medians and 95% intervals, MB/s", ["bytes", "latency", "forth", "back", "both"],
      list(at(one, "messages.sizes")).map((row) => [plain(at(row, "bytes")), with_interval(row, "latency", "s", duration),
        ...["forth", "back", "both"].map((key) => with_interval(row, key, "bytes_per_s", megabytes))]), 1), ...pairs(one),
    table("Collectives", ["", "bytes", "time of the slowest rank", "algorithm MB/s", "bus MB/s"], list(at(one, "collectives")).map((row) => [plain(at(row, "name")),
      plain(at(row, "bytes")), with_interval(row, "time", "s", duration), megabytes(number(row, "algorithm_bytes_per_s")), megabytes(number(row, "bus_bytes_per_s"))]), 1));

  function others() {
    for (const { name, document: one } of data.others) {
      const notices = list(at(one, "notices")).map((text) => make("p", { className: "note" }, plain(text)));
      section("others", make("h3", {}, name), state(one), other_tables[at(one, "schema")](one), ...notices,
        make("details", {}, make("summary", {}, "Settings and machine of " + name), make("p", { className: "note" }, plain(at(one, "started")) + "  " + plain(at(one, "command"))),
          table("", ["", ""], ["place", "model", "settings"].flatMap((group) => Object.entries(at(one, group) || {})
            .map(([key, value]) => [group + "." + key, plain(value)])))));
    }
  }

  function contents() {
    for (const one of document.querySelectorAll("main > section"))
      if (one.childElementCount > 1 && one.querySelector("p, table, figure, dl"))
        document.getElementById("contents").append(make("a", { href: "#" + one.id }, one.querySelector("h2").textContent), " ");
      else
        one.hidden = true;
  }

  for (const part of [answer, scaling, matrix, latency, stalls, cold, others, compare, runs, environment, contents, draw_charts]) part();
  document.documentElement.dataset.height = document.documentElement.scrollHeight; /* for report/browser.c */
  dark.addEventListener("change", draw_charts);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();
