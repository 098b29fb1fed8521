// The last hour as two plots, drawn again every ten seconds and in the colours of the page.
(() => {
  const plots = new Map();
  const places = [...document.querySelectorAll(".plot")];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const hours = (place) => (at) => uPlot.fmtDate("{HH}:{mm}")(uPlot.tzDate(new Date(at * 1000), place.dataset.zone));

  function options(place) {
    const names = place.dataset.names.split("|");
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    return {
      width: place.clientWidth, height: 180, cursor: { drag: { x: false, y: false } },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), place.dataset.zone),
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [{ ...axis, values: (_, at) => at.map(hours(place)) }, { ...axis, size: 40 }],
      series: [{ label: place.dataset.time, value: (_, at) => (at == null ? "–" : hours(place)(at)) }, ...names.map((label, n) => ({
        label, stroke: colour(n ? "--second" : "--first"), width: 2, spanGaps: true, points: { show: true, size: 4 },
      }))],
    };
  }

  function draw(rows) {
    for (const place of places) {
      const lines = place.dataset.lines.split(" ");
      const data = [rows.map((row) => row.at), ...lines.map((name) => rows.map((row) => row[name]))];
      plots.get(place)?.destroy();
      place.replaceChildren();
      plots.set(place, new uPlot(options(place), data, place));
    }
  }

  let latest = [];
  async function refresh() {
    if (document.hidden) return;
    const answer = await fetch("/console/now.json");
    if (answer.ok) draw((latest = await answer.json()));
  }
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => draw(latest), 150); });
  setInterval(refresh, 10_000);
  refresh();
})();
