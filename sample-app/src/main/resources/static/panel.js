import {call} from './calls.js';
import {Chart} from './charts.js';
import * as operations from './operations.js';
import {Series} from './series.js';
import * as snippets from './snippets.js';

/** Multiples of the rate that are tried next to it. */
const TRIED = [.2, .4, .6, .8, 1, 1.25, 1.5, 2, 3];

/** One algorithm under load: its numbers, its charts, and the code that makes its limit. */
export class Panel {

  constructor(algorithm, parent) {
    this.algorithm = algorithm;
    this.root = document.getElementById('panel').content.firstElementChild.cloneNode(true);
    this.root.dataset.algorithm = algorithm.id;
    this.root.setAttribute('aria-label', algorithm.name);
    this.find('h2').textContent = algorithm.name;
    this.find('.says').textContent = algorithm.says;
    this.find('[data-level]').textContent = algorithm.level + (algorithm.finds ? '; dashed: the current limit' : ' (first caller)');
    if (algorithm.finds) this.find('[data-times]').textContent = 'Time of each response, ms; dashed: late after';
    this.root.querySelectorAll('.copy').forEach(button => button.addEventListener('click', () => copy(button)));
    parent.append(this.root);
    this.find('.permits').hidden = !algorithm.charge;
    this.find('.found').hidden = !algorithm.finds;
    const least = {calls: 4, level: algorithm.tells && !algorithm.charge ? .4 : 4, waits: 100, rates: 10};
    this.charts = Object.fromEntries([...this.root.querySelectorAll('[data-chart]')]
      .map(element => [element.dataset.chart, new Chart(element.dataset.chart, element, least[element.dataset.chart])]));
    this.series = new Series(this.algorithm);
    this.pending = new Set();
    this.draw();
  }

  remove() {
    this.root.remove();
  }

  /** Makes the limit what the controls say, and tries other rates next to it. Without those the run is as before. */
  async change(settings) {
    await operations.change(this.algorithm, settings);
    this.settings = settings;
    this.tries = Boolean(settings.rate); // calls in flight have none
    if (this.tries) {
      const [permits, period] = settings.rate.split('/');
      const rates = new Set(TRIED.map(times => Math.max(1, Math.round(permits * times))));
      await operations.tryRates(this.algorithm, [...rates].map(rate => `${rate}/${period}`)).catch(() => { this.tries = false; });
    }
    if (!this.tries) this.find('.rates').hidden = true;
  }

  /** Gives the limit back what the configuration says. */
  restore() {
    return operations.restore(this.algorithm);
  }

  /** The level of a caller; of a bucket that may be in debt what is left in it, by the time until it is full. */
  async level(user) {
    const reported = await operations.level(this.algorithm, user);
    if (!this.algorithm.charge) return reported;
    const [, permits, units, unit] = /^(\d+)\/(\d*)(\w)$/.exec(this.settings.rate);
    const seconds = Number(units || 1) * {s: 1, m: 60, h: 3600}[unit];
    return Math.round(this.settings.burst - (reported * permits) / seconds);
  }

  /** Shows the code of the limit. */
  describe(settings) {
    this.code('annotation', snippets.annotation(this.algorithm, settings));
    this.code('yml', snippets.yml(this.algorithm, settings));
  }

  async begin(callers, fresh) {
    if (fresh) await this.forget(callers);
    this.before = await operations.meters(this.algorithm).catch(() => null);
    this.find('.meters').hidden = true;
    this.series = new Series(this.algorithm);
    this.ended = false;
    [this.first] = callers;
    this.watch(this.first, this.series);
    this.compare(this.series);
  }

  /** Full limits; the adaptive limit has no key and starts at its upper bound again. */
  async forget(callers) {
    if (this.algorithm.finds) {
      await operations.change(this.algorithm, {...this.settings, minConcurrent: this.settings.maxConcurrent});
      await operations.change(this.algorithm, this.settings);
    } else {
      await Promise.all(callers.map(user => operations.forget(this.algorithm, user)));
    }
  }

  /** The answers say what is left; between them the page asks, so that a budget is seen to come back. */
  async watch(user, series) {
    while (series === this.series && !this.ended) {
      const {offered} = series.totals;
      const left = await this.level(user).catch(() => null);
      const calm = this.algorithm.tells || (offered === series.totals.offered && this.pending.size === 0);
      if (left !== null && calm && !this.ended) this.shows(left);
      await new Promise(resolve => setTimeout(resolve, 100));
    }
  }

  /** The application computes it at most once a second. */
  async compare(series) {
    while (series === this.series && !this.ended) {
      await this.showTried();
      await new Promise(resolve => setTimeout(resolve, 1000));
    }
  }

  /** Shows what other rates would have rejected until now; nothing where that is not known. */
  async showTried() {
    const tried = this.tries ? await operations.triedRates(this.algorithm).catch(() => []) : [];
    if (!tried.length || !this.tries) return;
    this.find('.rates').hidden = false;
    this.find('[data-period]').textContent = `by permits per ${tried[0].rate.split('/')[1].split(' ')[0]}`;
    this.charts.rates.show([tried.map(({rate}) => parseInt(rate, 10)), tried.map(({rejected}) => rejected)], 0);
    this.charts.rates.element.setAttribute('aria-label',
      `Rejected by other rates: ${tried.map(({rate, rejected}) => `${rate} ${rejected} %`).join(', ')}`);
  }

  shows(level) {
    if (this.algorithm.finds) this.series.found(level);
    else this.series.left(level);
  }

  offer(user, failed) {
    const series = this.series;
    series.offered(user);
    const answer = call(this.algorithm, user)
      .then(given => {
        series.answered(user, given, parseInt(this.settings.lateAfter, 10) || null);
        this.last = given;
      })
      .catch(failed)
      .finally(() => this.pending.delete(answer));
    this.pending.add(answer);
  }

  /** Waits for the last answers, then holds the numbers of the page against the meters of the application. */
  async end() {
    await Promise.all(this.pending);
    this.ended = true;
    const [left] = await Promise.all([this.level(this.first).catch(() => null), this.showTried()]);
    if (left !== null) this.shows(left);
    this.draw();
    const after = await operations.meters(this.algorithm).catch(() => null);
    const line = this.find('.meters');
    line.hidden = false;
    if (!after || !this.before) {
      line.textContent = 'The meters could not be read.';
      return;
    }
    const counted = Object.keys(after).map(outcome => [outcome, after[outcome] - this.before[outcome]]);
    const equal = counted.every(([outcome, count]) => count === this.series.totals[outcome]);
    line.dataset.equal = equal;
    line.textContent = equal
      ? 'The meters of the application have the same counts.'
      : `The meters have other counts: ${counted.map(([outcome, count]) => `${outcome} ${count}`).join(', ')}. `
        + 'Others are calling, too.';
  }

  /** Brings everything up to date; called ten times a second during a run. */
  draw() {
    const {series} = this;
    const until = series.seconds();
    this.root.querySelectorAll('[data-count]').forEach(element => {
      element.textContent = series.totals[element.dataset.count];
    });
    this.find('.totals .shadowed').hidden = series.totals.shadowed === 0;
    this.charts.calls.show(series.stacked(), until);
    this.charts.level.show(series.levels(), until);
    this.charts.waits.show(series.waited(), until);
    this.label();
    this.share();
    if (this.last) {
      this.code('answer', [this.last.status, ...this.last.headers, '', this.last.detail].join('\n'));
    }
  }

  /** New colours. */
  restyle() {
    Object.values(this.charts).forEach(chart => chart.build());
  }

  /** Says in words what the charts show. */
  label() {
    const {offered, admitted, delayed, rejected, limit} = this.series.totals;
    const waits = this.charts.waits.data.slice(1, 3).flat().filter(millis => millis !== null);
    const level = this.charts.level.data[1].at(-1);
    this.charts.calls.element.setAttribute('aria-label',
      `Calls per 100 ms: of ${offered} offered, ${admitted} admitted, ${delayed} delayed, ${rejected} rejected`);
    this.charts.level.element.setAttribute('aria-label',
      `${this.algorithm.level}: ${level ?? 'not known yet'}${this.algorithm.finds ? `, current limit: ${limit}` : ''}`);
    this.charts.waits.element.setAttribute('aria-label',
      `${this.algorithm.finds ? 'Response times' : 'Waits of admitted calls'}: `
        + (waits.length ? `at most ${waits.reduce((a, b) => Math.max(a, b))} ms` : 'none yet'));
  }

  share() {
    const most = Math.max(1, ...[...this.series.callers.values()].map(caller => caller.offered));
    const rows = [...this.series.callers].map(([user, {rejected, ...counts}]) => {
      const row = document.createElement('li');
      const name = document.createElement('span');
      name.textContent = user;
      const bar = document.createElement('span');
      bar.className = 'bar';
      bar.setAttribute('aria-hidden', 'true');
      for (const kind of ['admitted', 'delayed', 'shadowed', 'rejected']) {
        const part = document.createElement('i');
        part.className = kind;
        part.style.inlineSize = `${(100 * (counts[kind] ?? rejected)) / most}%`;
        bar.append(part);
      }
      const numbers = document.createElement('span');
      numbers.textContent = `${counts.admitted + counts.delayed + counts.shadowed} admitted, ${rejected} rejected`;
      row.append(name, bar, numbers);
      return row;
    });
    this.find('.share').replaceChildren(...rows);
  }

  code(kind, text) {
    const code = this.find(`[data-code=${kind}] code`);
    if (code.textContent === text) return;
    code.textContent = text;
    const button = this.find(`[data-code=${kind}] .copy`);
    if (button) button.textContent = 'Copy';
  }

  find(selector) {
    return this.root.querySelector(selector);
  }
}

async function copy(button) {
  const text = button.parentElement.querySelector('code').textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without https, other than on localhost, browsers let scripts copy a selection only.
    getSelection().selectAllChildren(button.parentElement.querySelector('code'));
    document.execCommand('copy');
  }
  button.textContent = 'Copied';
}
