"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

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
      hovertemplate: "iteration %{x:,}<br>%{y:,.6~g} " + plot.unit + "<extra>" + found.name + "</extra>",
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
    return series.concat(marks);
  }

  function layout(plot) {
    const axis = {
      gridcolor: css("--grid"), linecolor: css("--grid"), zeroline: false, automargin: true,
      tickfont: { color: css("--muted") }, separatethousands: true,
    };
    return {
      height: 300,
      margin: { l: 56, r: 12, t: 26, b: 40 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--muted"), activecolor: css("--ink") },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: css("--ink") },
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
      hovermode: "closest",
      showlegend: plot.series.length + plot.marks.length > 1,
      legend: { orientation: "h", x: 0, y: -0.2, yanchor: "top", font: { size: 11 } },
      xaxis: Object.assign({}, axis, { title: { text: "iteration", standoff: 6 }, showgrid: false }),
      yaxis: Object.assign({}, axis, plot.log ? { type: "log", dtick: 1 } : {}),
      yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
    };
  }

  const config = {
    responsive: true, displaylogo: false, showSendToCloud: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "sendDataToCloud"],
  };

  function draw() {
    for (const plot of plots) {
      const frame = document.querySelector("#chart-" + plot.key + " .plot");
      let target = frame.querySelector(".live");
      if (!target) {
        target = document.createElement("div");
        target.className = "live";
        frame.append(target);
        new ResizeObserver(() => target.data && Plotly.Plots.resize(target)).observe(frame);
      }
      Plotly.react(target, traces(plot), layout(plot), config).then(() => {
        frame.querySelector(".drawing").setAttribute("hidden", "");
      }, () => target.remove());
    }
  }

  draw();
  dark.addEventListener("change", draw);
})();
