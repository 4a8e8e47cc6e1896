// The pages are complete without this file; it adds charts, another base release, filters, and state in the address.
"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const edges = [2.5, 5, 10, 20]; // percent; the first edge is each series' own quiet zone

  // --- state in the address: only what differs from the page as it was written ---------------------------------
  const query = new URLSearchParams(location.search);
  function remember(name, value, standard) {
    if (value === standard || value === "" || value === false) query.delete(name);
    else query.set(name, value === true ? "1" : value);
    const text = query.toString();
    history.replaceState(null, "", (text ? `?${text}` : location.pathname) + location.hash);
  }

  // --- theme ------------------------------------------------------------------------------------------------
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const toggle = document.getElementById("theme");
  function nameTheme() { toggle.textContent = isDark() ? "Light" : "Dark"; }
  toggle.hidden = false;
  nameTheme();
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("pointdrop-theme", root.dataset.theme); } catch { /* storage is off */ }
    nameTheme();
    drawCharts(true);
  });
  prefersDark.addEventListener("change", () => { nameTheme(); drawCharts(true); });

  // --- age of the newest result: the page itself carries only the time, so the same history gives the same page ----
  for (const time of all("time.age")) {
    const hours = (Date.now() - Date.parse(time.dateTime)) / 3.6e6;
    if (!(hours >= 0)) continue;
    const age = hours < 1 ? "within the hour" : hours < 48 ? `${Math.round(hours)} h ago` : `${Math.round(hours / 24)} days ago`;
    time.textContent += ` (${age})`;
    const limit = Number(time.dataset.staleDays || 0);
    if (limit && hours > 24 * limit) time.classList.add("stale");
  }

  // --- charts ---------------------------------------------------------------------------------------------------
  function config() {
    const ink = css("--ink"), muted = css("--muted"), line = css("--line"), font = css("--sans");
    const both = (name) => ({ color: css(name), stroke: css(name), fill: css(name) });
    const axis = { labelColor: muted, titleColor: muted, gridColor: line, domainColor: css("--strong"), tickColor: css("--strong"), titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 11 };
    return {
      background: "transparent", font, view: { stroke: null }, axis,
      legend: { labelColor: ink, titleColor: muted, labelFontSize: 12, titleFontWeight: "normal" },
      range: { category: ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"].map(css) },
      style: {
        level: both("--level"), band: { ...both("--band"), stroke: null, fillOpacity: .75 }, block: both("--block"),
        point: { ...both("--level"), stroke: css("--bg"), strokeWidth: 1 },
        worse: both("--worse"), better: both("--better"), other: both("--other"), note: both("--note"),
        axis: both("--strong"), flame: { stroke: css("--bg"), color: css("--band") }, flametext: { color: "#16202c", fill: "#16202c", stroke: null },
        "guide-label": { font }, "guide-title": { font }, "group-title": { font },
      },
      text: { font, fontSize: 11, strokeWidth: 0 }, rule: { strokeWidth: 1 },
    };
  }
  async function draw(figure) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const spec = structuredClone(window.pointdropCharts[figure.dataset.chart]);
    const names = data.names || [];
    for (const param of spec.params || []) {
      if (param.name === "names") param.value = names;
      if (param.name === "ticks") param.value = names.map((_, position) => position);
    }
    if (data.height) spec.height = data.height;
    delete data.height;
    // courses by the second are written as one array a line
    if (data.lines) data.seconds = data.lines.flatMap((line) => line.y.map((y, at) => ({ t: at * line.step, v: line.v, y })));
    delete data.lines;
    // no room for words over a narrow chart with many findings: their shapes stay, the words are in the list
    if (figure.clientWidth < 560 && (data.marks || []).length > 4) for (const mark of data.marks) mark.label = mark.label.charAt(0);
    spec.datasets = { unit: [{ one: 1, zero: 0 }], ...data };
    delete spec.datasets.names;
    await window.vegaEmbed(figure.querySelector(".plot"), spec, {
      actions: false, ast: true, defaultStyle: false, renderer: "svg", logLevel: 1, config: config(),
      tooltip: { disableDefaultStyle: true },
    });
    // the figure is one image with a label, and the table below it has every number
    figure.querySelector("svg").setAttribute("aria-hidden", "true");
    figure.dataset.drawn = "1";
  }
  // A chart is drawn when it comes near the window: a page may have many, and hidden ones have no width.
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && !entry.target.dataset.drawn) { near.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "300px" });
  function drawCharts(again) {
    if (!window.vegaEmbed) return;
    for (const figure of all(".chart")) {
      if (again && !figure.dataset.drawn) continue;
      delete figure.dataset.drawn;
      near.unobserve(figure);
      near.observe(figure);
    }
  }

  // --- heat tables ------------------------------------------------------------------------------------------------
  const median = (values) => {
    const sorted = values.filter((value) => Number.isFinite(value)).sort((a, b) => a - b);
    const half = sorted.length >> 1;
    return !sorted.length ? null : sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  };
  const ratio = (value, base) => value === null || base === null || base === undefined ? null : base === 0 ? (value === 0 ? 1 : Infinity) : value / base;
  function shade(value, better, smallest) {
    if (value === null) return "na";
    const gain = value <= 0 ? (better === "higher" ? -Infinity : Infinity) : better === "higher" ? Math.log(value) : -Math.log(value);
    const steps = [smallest, ...edges.filter((edge) => edge > smallest)];
    let step = steps.filter((edge) => Math.abs(gain) + 1e-12 >= Math.log1p(edge / 100)).length;
    if (step) step += edges.length + 1 - steps.length;
    return step ? (gain > 0 ? "b" : "w") + step : "";
  }
  function paint(cell, value, better, smallest, decimals) {
    const mark = cell.classList.contains("cp") ? " cp" : "";
    cell.textContent = value === null ? "–" : Number.isFinite(value) ? value.toFixed(decimals) : "inf";
    cell.className = (shade(value, better, smallest) + mark).trim();
  }
  function rebase(table, data, choice) {
    const previous = choice === "previous";
    const base = previous ? null : Number(choice);
    const against = (row, position) => {
      if (previous) { for (let at = position - 1; at >= 0; at--) if (row.values[at] !== null) return row.values[at]; return null; }
      return row.values[row.values[base] === null ? row.values.findIndex((value) => value !== null) : base];
    };
    const everything = [];
    const bodies = all("tbody:not(.all)", table);
    data.groups.forEach((group, number) => {
      const rows = all("tr", bodies[number]);
      const ratios = group.rows.map((row) => row.values.map((value, position) => ratio(value, against(row, position))));
      const shared = group.rows.map((row, at) => (previous || row.values[base] !== null ? ratios[at] : null)).filter(Boolean);
      everything.push(...shared);
      data.versions.forEach((_, position) => {
        paint(rows[0].cells[position + 2], median(shared.map((row) => row[position])), group.better, group.quiet, data.decimals);
        group.rows.forEach((row, at) => paint(rows[at + 1].cells[position + 2], ratios[at][position], row.better, row.quiet, data.decimals));
      });
    });
    const whole = table.querySelector("tbody.all tr");
    if (whole) data.versions.forEach((_, position) => paint(whole.cells[position + 2], median(everything.map((row) => row[position])), data.groups[0].better, data.quiet, data.decimals));
    table.querySelector(".basename").textContent = previous ? "the release before" : data.versions[base];
    all("thead th", table).forEach((head, at) => head.classList.toggle("base", at - 2 === base));
  }
  function heatPage(controls) {
    const views = all(".view");
    const radios = all("input[name=metric]", controls), base = controls.querySelector("[name=base]");
    const search = controls.querySelector("[name=q]"), only = controls.querySelector("[name=only]"), said = controls.querySelector("output");
    const data = Object.fromEntries(all("[data-heat-data]").map((node) => [node.dataset.heatData, JSON.parse(node.textContent)]));
    const standard = radios[0].value;
    controls.hidden = false;
    const chosen = () => radios.find((radio) => radio.checked).value;
    function offerBases() {
      const now = data[chosen()];
      base.replaceChildren(...now.versions.map((version, at) => new Option(version, at)), new Option("the release before", "previous"));
      const wanted = query.get("base");
      base.value = wanted === "previous" ? wanted : String(Math.max(0, now.versions.indexOf(wanted)) || now.base);
      if (wanted && wanted === now.versions[0]) base.value = "0";
    }
    function apply() {
      const id = chosen(), now = data[id];
      for (const view of views) view.hidden = view.dataset.view !== id;
      const table = document.querySelector(`[data-heat="${CSS.escape(id)}"]`);
      rebase(table, now, base.value);
      const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0, total = 0;
      for (const body of all("tbody:not(.all)", table)) {
        const rows = all("tr", body), group = rows[0].cells[0].textContent.toLowerCase();
        let kept = 0;
        rows.slice(1).forEach((row) => {
          const text = `${row.cells[0].textContent.toLowerCase()} ${group}`;
          row.hidden = !(words.every((word) => text.includes(word)) && (!only.checked || "worse" in row.dataset));
          total += 1; kept += row.hidden ? 0 : 1;
        });
        rows[0].hidden = !kept;
        shown += kept;
      }
      const whole = table.querySelector("tbody.all");
      if (whole) whole.hidden = shown < total;
      said.textContent = shown < total ? `${shown} of ${total} tests` : "";
      remember("metric", id, standard);
      remember("base", base.value === "previous" ? "previous" : now.versions[base.value], now.versions[now.base]);
      remember("q", search.value.trim(), "");
      remember("only", only.checked, false);
    }
    const wanted = radios.find((radio) => radio.value === query.get("metric"));
    if (wanted) wanted.checked = true;
    search.value = query.get("q") || "";
    only.checked = query.get("only") === "1";
    offerBases();
    apply();
    controls.addEventListener("input", (event) => { if (event.target.name === "metric") offerBases(); apply(); });
  }

  // --- sections by metric (test and compare pages), and lists with a filter -----------------------------------
  function sectionPage(controls) {
    const radios = all("input[name=metric]", controls);
    controls.hidden = false;
    const apply = () => {
      const id = radios.find((radio) => radio.checked).value;
      for (const view of all(".view")) view.hidden = view.dataset.view !== id;
      remember("metric", id, radios[0].value);
    };
    const wanted = radios.find((radio) => radio.value === query.get("metric"));
    if (wanted) wanted.checked = true;
    apply();
    controls.addEventListener("input", apply);
  }
  function comparePage(controls) {
    const data = JSON.parse(document.getElementById("compare-data").textContent);
    const radios = all("input[name=metric]", controls), first = controls.querySelector("[name=a]"), second = controls.querySelector("[name=b]");
    const number = (value) => value === null ? "–" : Math.abs(value) >= 9999.5 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(4)));
    for (const select of [first, second]) select.replaceChildren(...data.subjects.map((label, at) => new Option(label, at)));
    const place = (name, standard) => { const at = data.subjects.indexOf(query.get(name)); return String(at < 0 ? standard : at); };
    first.value = place("a", data.a);
    second.value = place("b", data.b);
    controls.hidden = false;
    const wanted = radios.find((radio) => radio.value === query.get("metric"));
    if (wanted) wanted.checked = true;
    function apply() {
      const id = radios.find((radio) => radio.checked).value, view = data.views[id];
      for (const section of all(".view")) section.hidden = section.dataset.view !== id;
      const section = document.querySelector(`.view[data-view="${CSS.escape(id)}"]`);
      const a = view.values[first.value], b = view.values[second.value], ratios = view.tests.map((_, at) => ratio(b[at], a[at]));
      for (const node of all("[data-name]")) node.textContent = data.subjects[(node.dataset.name === "a" ? first : second).value];
      all("[data-pair] tbody tr", section).forEach((row, at) => {
        row.cells[1].textContent = number(a[at]);
        row.cells[2].textContent = number(b[at]);
        paint(row.cells[3], ratios[at], view.tests[at].better, view.tests[at].quiet, view.decimals);
      });
      summarize(section, view, ratios);
      const figure = section.querySelector(".chart");
      const drawn = view.tests.map((test, at) => ({ test: test.test, r: ratios[at], one: 1, kind: { w: "worse", b: "better" }[shade(ratios[at], test.better, test.quiet)[0]] || "note" })).filter((row) => row.r > 0 && Number.isFinite(row.r));
      figure.querySelector("script").textContent = JSON.stringify({ tests: drawn, height: 17 * Math.max(1, drawn.length) });
      delete figure.dataset.drawn;
      near.unobserve(figure);
      near.observe(figure);
      remember("metric", id, radios[0].value);
      remember("a", data.subjects[first.value], data.subjects[data.a]);
      remember("b", data.subjects[second.value], data.subjects[data.b]);
    }
    function summarize(section, view, ratios) {
      const groups = new Map();
      view.tests.forEach((test, at) => { if (Number.isFinite(ratios[at]) && ratios[at] !== null) groups.set(test.group, [...(groups.get(test.group) || []), ratios[at]]); });
      if (groups.size > 1) groups.set("all tests", [...groups.values()].flat());
      const rows = [...groups].map(([group, values]) => {
        const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
        const spread = values.length > 1 ? Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1)) : 0;
        const row = document.createElement("tr"), head = Object.assign(document.createElement("th"), { scope: "row", textContent: group });
        row.append(head, ...[String(values.length), ...[mean, median(values), Math.min(...values), Math.max(...values), spread].map((value) => value.toFixed(view.decimals))].map((text) => Object.assign(document.createElement("td"), { textContent: text })));
        return row;
      });
      section.querySelector("[data-summary] tbody").replaceChildren(...rows);
    }
    controls.addEventListener("input", apply);
    controls.querySelector("[name=swap]").addEventListener("click", () => { [first.value, second.value] = [second.value, first.value]; apply(); });
    if (query.get("a") || query.get("b") || query.get("metric")) apply();
    else for (const section of all(".view").slice(1)) section.hidden = true;
  }
  function listPage(controls) {
    const rows = all("tr[data-text]"), search = controls.querySelector("[name=q]"), only = controls.querySelector("[name=only]");
    const said = controls.querySelector("output");
    controls.hidden = false;
    const apply = () => {
      const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.dataset.text.toLowerCase();
        row.hidden = !(words.every((word) => text.includes(word)) && (!only.checked || ["regression", "drift"].includes(row.dataset.kind)));
        shown += row.hidden ? 0 : 1;
      }
      // what a search finds is not left folded
      for (const fold of all("details")) fold.open ||= shown < rows.length && all("tr[data-text]:not([hidden])", fold).length > 0;
      said.textContent = shown < rows.length ? `${shown} of ${rows.length}` : "";
      remember("q", search.value.trim(), "");
      remember("only", only.checked, false);
    };
    search.value = query.get("q") || "";
    only.checked = query.get("only") === "1";
    apply();
    controls.addEventListener("input", apply);
  }

  // --- commands to copy -----------------------------------------------------------------------------------------
  for (const box of all(".command")) {
    if (!navigator.clipboard) break;
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(box.querySelector("pre").textContent.trim());
      button.textContent = "Copied";
    });
    box.append(button);
  }

  // --- the newest releases are at the right end of a table too wide for the window ------------------------------
  for (const table of all("table.heat")) table.parentElement.scrollLeft = table.parentElement.scrollWidth;

  const pages = { heat: heatPage, sections: sectionPage, compare: comparePage, list: listPage };
  for (const controls of all("[data-controls]")) pages[controls.dataset.controls](controls);
  drawCharts(false);
})();
