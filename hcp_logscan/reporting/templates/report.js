"use strict";
// Draws the charts with plotly over the still drawings, each when it comes near the viewport.
// Whatever fails (an old browser, a stricter policy) leaves the still drawing as it is.
(() => {
  if (!window.IntersectionObserver || !window.ResizeObserver || !window.DecompressionStream) return;
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const drawn = new Set();
  let library = null;

  async function unpacked() {
    const packed = atob(document.getElementById("plotly").textContent.trim());
    const bytes = new Uint8Array(packed.length);
    for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // the page's policy names the hash of this very text: no eval, no blob, no request
  async function run() {
    const script = document.createElement("script");
    script.textContent = await unpacked();
    document.head.append(script);
    if (!window.Plotly) throw new Error("the library did not run");
  }

  function loaded() {
    if (!library) library = run();
    return library;
  }

  function traces(plot) {
    const series = plot.series.map((found) => ({
      type: "scatter",
      name: found.name,
      x: found.x,
      y: found.y,
      mode: found.mode,
      connectgaps: false,
      opacity: found.wide ? 0.4 : 1,
      line: { color: css("--s" + found.colour), width: found.wide ? 1 : 1.8, dash: found.dash },
      marker: { color: css("--s" + found.colour), size: 4 },
      hovertemplate: plot.words.iteration + " %{x:,}<br>%{y:,.6~g} " + plot.unit + "<extra>" + found.name + "</extra>",
    }));
    const marks = plot.marks.map((found) => ({
      type: "scatter",
      name: found.name,
      x: found.x,
      y: found.x.map(() => 0.03),
      yaxis: "y2",
      mode: "markers",
      marker: { color: css("--mark"), size: 9, symbol: found.symbol },
      hovertemplate: "iteration %{x:,}<extra>" + found.name + "</extra>",
    }));
    const above = plot.above.x.length ? [{
      type: "scatter",
      name: plot.words.above,
      x: plot.above.x,
      y: plot.above.y,
      mode: "markers",
      marker: { color: css("--mark"), size: 9, symbol: "diamond-open", line: { width: 1.6 } },
      hovertemplate: plot.words.iteration + " %{x:,}<br>%{y:,.6~g} " + plot.unit + "<extra>" + plot.words.above + "</extra>",
    }] : [];
    return series.concat(marks, above);
  }

  // a line across, with the label where the still drawing has it
  function level(y, found, line) {
    return {
      type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line,
      label: {
        text: found.label, textposition: found.at, yanchor: found.over ? "bottom" : "top",
        font: { color: css("--ink"), size: 11 },
      },
    };
  }

  function area(low, high, colour) {
    return {
      type: "rect", layer: "below", xref: "paper", x0: 0, x1: 1, y0: low, y1: high,
      line: { width: 0 }, fillcolor: css(colour), opacity: 0.09,
    };
  }

  function levels(plot) {
    const shapes = [];
    const [low, high] = (plot.ys || [0, 1]).map((y) => (plot.log ? 10 ** y : y));
    if (plot.limit && plot.limit.y < high) shapes.push(area(plot.limit.y, high, "--mark"));
    if (plot.band) {
      const top = Math.min(plot.band.high, high);
      const edge = { color: css("--good"), width: 1, dash: "dot" };
      shapes.push(area(Math.max(plot.band.low, low), top, "--good"));
      shapes.push(level(top, plot.band, top < high ? edge : { width: 0 }));
      if (plot.band.low > low) shapes.push(level(plot.band.low, { label: "" }, edge));
    }
    for (const found of [plot.limit, plot.off].filter(Boolean)) {
      shapes.push(level(found.y, found, { color: css("--ink"), width: 1.4, dash: found.dash }));
    }
    return shapes;
  }

  // the axes of the still drawing, so that nothing jumps; points at an edge stay whole
  function ranges(plot) {
    const [first, last] = plot.xs;
    const pad = Math.max(last - first, 1) * 0.015;
    const [low, high] = plot.ys || [0, 1];
    const room = high > low ? (high - low) * 0.02 : 1;
    return {
      x: { range: [first - pad, last + pad], ...(last - first < 5 ? { dtick: 1 } : {}) },
      y: {
        range: [low - room, high + room],
        showticklabels: Boolean(plot.ys),
        ...(plot.log ? { type: "log", dtick: Math.max(1, Math.floor((high - low) / 5)) } : {}),
      },
    };
  }

  const AXES = 220; // height between the axes
  const TITLE = 42; // of ticks and title below them

  // the legend's rows stand below the axes, however many there are
  function legendHeight(found, width) {
    if (found.length < 2) return 0;
    const longest = Math.max(...found.map((trace) => trace.name.length));
    const across = Math.max(1, Math.floor((width - 68) / (longest * 6.2 + 46)));
    return 19 * Math.ceil(found.length / across) + 8;
  }

  function layout(plot, found, width) {
    const legend = legendHeight(found, width);
    const range = ranges(plot);
    const axis = {
      gridcolor: css("--grid"), linecolor: css("--grid"), zeroline: false, automargin: true,
      tickfont: { color: css("--muted") }, separatethousands: true,
    };
    return {
      height: 26 + AXES + TITLE + legend,
      margin: { l: 56, r: 12, t: 26, b: TITLE + legend },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--muted"), activecolor: css("--ink") },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: css("--ink") },
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
      hovermode: "closest",
      dragmode: touch.matches ? false : "zoom", // a finger scrolls the page
      showlegend: legend > 0,
      legend: { orientation: "h", x: 0, y: -TITLE / AXES, yanchor: "top", font: { size: 11 } },
      shapes: levels(plot),
      xaxis: {
        ...axis, ...range.x, title: { text: plot.words.iteration, standoff: 6 }, showgrid: false, tickformat: ",~f",
      },
      yaxis: { ...axis, ...range.y, tickformat: ",.6~g" },
      yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
    };
  }

  const config = {
    displaylogo: false, showSendToCloud: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "sendDataToCloud"],
  };

  async function draw(plot) {
    const frame = document.querySelector("#chart-" + plot.key + " .plot");
    const still = frame.querySelector(".drawing");
    let target = frame.querySelector(".live");
    try {
      await loaded();
      if (!target) {
        target = document.createElement("div");
        target.className = "live";
        target.setAttribute("role", "group"); // it holds buttons, which an image cannot
        target.setAttribute("aria-label", still.getAttribute("aria-label"));
        frame.append(target);
        const live = target;
        new ResizeObserver(() => {
          if (live.data && live.clientWidth) Plotly.Plots.resize(live); // hidden on paper
        }).observe(frame);
      }
      const found = traces(plot);
      await Plotly.react(target, found, layout(plot, found, frame.clientWidth), config);
      for (const svg of target.querySelectorAll("svg.main-svg")) svg.setAttribute("aria-hidden", "true");
      still.setAttribute("hidden", "");
      frame.dataset.drawn = "live";
      drawn.add(plot);
    } catch (reason) {
      if (target) target.remove();
      still.removeAttribute("hidden");
      frame.dataset.drawn = "still";
    }
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((found) => found.isIntersecting)) {
      near.unobserve(entry.target);
      draw(plots.find((plot) => entry.target.id === "chart-" + plot.key));
    }
  }, { rootMargin: "400px 0px" });
  for (const plot of plots) near.observe(document.getElementById("chart-" + plot.key));
  dark.addEventListener("change", () => drawn.forEach(draw));
})();
