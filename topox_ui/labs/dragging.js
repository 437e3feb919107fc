// Bars of the chart of one's own schedule can be dragged along the time axis, to whole milliseconds. It
// tells the server which task now starts when, as its field would.
export default function ({ data, setTriggerValue }) {
  const CHART = ".st-key-lab_hand .js-plotly-plot";
  const span = (axis, share) => axis.range[0] + share * (axis.range[1] - axis.range[0]);
  const barAt = (chart, x, y) => {
    for (const trace of chart.data) {
      const k = trace.y.findIndex(
        (row, i) => Math.abs(row - y) <= trace.width[i] / 2 && trace.base[i] <= x && x <= trace.base[i] + trace.x[i],
      );
      if (k >= 0) return { task: trace.customdata[k][0], start: trace.base[k], length: trace.x[k] };
    }
    return null;
  };
  const press = (event) => {
    const chart = event.target.closest?.(CHART);
    const plot = chart?.querySelector(".nsewdrag");
    if (!plot || event.button !== 0 || event.pointerType === "touch") return;
    const box = plot.getBoundingClientRect();
    const { xaxis, yaxis } = chart.layout;
    const x = span(xaxis, (event.clientX - box.left) / box.width);
    const y = span(yaxis, 1 - (event.clientY - box.top) / box.height);
    const bar = barAt(chart, x, y);
    if (!bar || !data.tasks.includes(bar.task)) return;
    event.preventDefault();
    event.stopPropagation();
    const perMs = box.width / (xaxis.range[1] - xaxis.range[0]);
    const ghost = document.createElement("div");
    ghost.setAttribute("aria-hidden", "true");
    ghost.textContent = bar.task;
    ghost.style.cssText =
      "position:fixed;z-index:99;pointer-events:none;box-sizing:border-box;text-align:center;font-weight:600;" +
      `font-size:12px;border:2px dashed currentColor;height:22px;width:${bar.length * perMs}px;top:${event.clientY - 11}px`;
    document.body.append(ghost);
    let start = bar.start;
    const follow = (at) => {
      start = Math.max(0, Math.round(bar.start + (at.clientX - event.clientX) / perMs));
      ghost.style.left = `${box.left + (start - xaxis.range[0]) * perMs}px`;
    };
    const release = () => {
      document.removeEventListener("pointermove", follow, true);
      document.removeEventListener("pointerup", release, true);
      document.removeEventListener("pointercancel", release, true);
      ghost.remove();
      if (start !== bar.start) setTriggerValue("moved", { task: bar.task, start });
    };
    follow(event);
    document.addEventListener("pointermove", follow, true);
    document.addEventListener("pointerup", release, true);
    document.addEventListener("pointercancel", release, true);
  };
  document.addEventListener("pointerdown", press, true);
  return () => document.removeEventListener("pointerdown", press, true);
}
