import uPlot from './webjars/uplot/1.6.30/dist/uPlot.esm.js';
import {WINDOW} from './series.js';

const HEIGHT = {calls: 190, level: 130, waits: 130, rates: 130};

/** A live chart of one kind (calls, level, waits, rates) in an element; redrawn when its width or the theme changes. */
export class Chart {

  /** @param least what the y axis reaches at least */
  constructor(kind, element, least) {
    this.kind = kind;
    this.element = element;
    this.least = least;
    this.data = EMPTY[kind];
    this.until = WINDOW;
    this.build();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(element);
  }

  /** Anew, in the colours of the theme. */
  build() {
    this.plot?.destroy();
    this.plot = new uPlot(OPTIONS[this.kind](this), this.data, this.element);
  }

  /** @param until the second at the right edge */
  show(data, until) {
    this.data = data;
    this.until = Math.max(until, WINDOW);
    this.plot.setData(data);
  }

  size() {
    return {width: Math.max(200, Math.floor(this.element.clientWidth)), height: HEIGHT[this.kind]};
  }
}

const EMPTY = {calls: [[], [], [], [], [], []], level: [[], [], []], waits: [[], [], [], []], rates: [[], []]};

const OPTIONS = {
  calls: chart => options(chart, [
    bars('offered', '--offered-soft'),
    bars('rejected', '--rejected'),
    bars('let in', '--shadowed'),
    bars('delayed', '--delayed'),
    bars('admitted', '--admitted'),
  ]),
  level: chart => options(chart, [
    {
      label: 'left', stroke: colour('--admitted'), fill: colour('--admitted-soft'), width: 2, points: {show: false},
      paths: uPlot.paths.stepped({align: 1}),
    },
    dashed('at most'),
  ]),
  waits: chart => options(chart, [
    points('immediate', '--admitted'),
    points('delayed', '--delayed'),
    dashed('late after'),
  ]),
  /** Over permits per period, not over time. */
  rates: chart => {
    const made = options(chart, [
      {label: 'rejected', stroke: colour('--rejected'), width: 2, points: {show: true, size: 5, fill: colour('--rejected')}},
    ]);
    made.scales.x.range = (plot, min, max) => [0, max * 1.05];
    Object.assign(made.axes[0], {incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (plot, ticks) => ticks.map(String)});
    return made;
  },
};

function options(chart, series) {
  const axis = {
    stroke: colour('--muted'), grid: {stroke: colour('--grid'), width: 1}, ticks: {show: false},
    font: '12px system-ui, sans-serif',
  };
  return {
    ...chart.size(),
    padding: [8, 18, 0, 0],
    legend: {show: false},
    cursor: {show: false},
    scales: {
      x: {time: false, range: () => [chart.until - WINDOW, chart.until]},
      y: {range: (plot, min, max) => [Math.min(0, (min ?? 0) * 1.1), Math.max(chart.least, (max ?? 0) * 1.1)]},
    },
    axes: [
      {...axis, size: 28, incrs: [1, 2, 5, 10], values: (plot, ticks) => ticks.map(tick => `${tick} s`)},
      {...axis, size: 44, incrs: [.1, .2, .5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]},
    ],
    series: [{}, ...series],
  };
}

function dashed(label) {
  return {label, stroke: colour('--offered'), width: 1, dash: [4, 4], points: {show: false}};
}

function points(label, name) {
  return {label, paths: () => null, stroke: colour(name), points: {show: true, size: 4, width: 0, fill: colour(name)}};
}

function bars(label, name) {
  return {
    label, width: 0, stroke: colour(name), fill: colour(name), points: {show: false},
    paths: uPlot.paths.bars({size: [1, 100], align: 1, gap: 0}),
  };
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
