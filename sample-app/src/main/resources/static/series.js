/** Seconds that the charts show. */
export const WINDOW = 20;

const BIN = 100;
const BINS = (WINDOW * 1000) / BIN;
const OUTCOMES = ['offered', 'admitted', 'delayed', 'rejected', 'shadowed'];
const PERMITS = ['reserved', 'returned', 'added', 'charged', 'debt'];
const FOUND = {inTime: 0, late: 0, limit: '–', inFlight: '–'};

/** The results of one run: totals, the latest 100 ms bins, waits, and callers. */
export class Series {

  constructor(algorithm) {
    this.algorithm = algorithm;
    this.since = performance.now();
    this.totals = {...Object.fromEntries([...OUTCOMES, ...PERMITS].map(count => [count, 0])), ...FOUND};
    this.bins = new Map();
    this.waits = [];
    this.callers = new Map();
    this.size = null;
  }

  /** A call was sent. */
  offered(user) {
    this.totals.offered++;
    this.bin().offered++;
    this.caller(user).offered++;
  }

  /** A call was answered. @param lateAfter milliseconds after which that was late; null for never */
  answered(user, answer, lateAfter) {
    this.totals[answer.outcome]++;
    const bin = this.bin();
    bin[answer.outcome]++;
    const caller = this.caller(user);
    caller[answer.outcome]++;
    if (answer.outcome !== 'shadowed') this.charged(answer);
    const {tells, charge} = this.algorithm;
    if (!tells && user === this.callers.keys().next().value && answer.r !== null) this.left(answer.r);
    if ((!tells || charge) && answer.q !== null) this.size = answer.q;
    if (answer.outcome === 'rejected') return;
    this.totals[answer.took > (lateAfter ?? Infinity) ? 'late' : 'inTime']++;
    const millis = this.algorithm.finds ? answer.took : answer.waited;
    const delayed = answer.outcome === 'delayed';
    this.waits.push([this.seconds(), delayed ? null : millis, delayed ? millis : null, lateAfter]);
  }

  /** What a call reserved, and what it has cost: the rest was returned, or added. */
  charged({reserved, charged}) {
    this.totals.reserved += reserved;
    this.totals.charged += charged;
    this.totals.returned += Math.max(0, reserved - charged);
    this.totals.added += Math.max(0, charged - reserved);
  }

  /** The level of the first caller; below zero it is in debt. */
  left(level) {
    this.bin().level = level;
    this.totals.debt = Math.max(0, -level);
  }

  /** What a limit has found, as the endpoint reports it. */
  found({limit, inFlight}) {
    Object.assign(this.bin(), {level: inFlight, size: limit});
    Object.assign(this.totals, {limit, inFlight});
  }

  seconds() {
    return (performance.now() - this.since) / 1000;
  }

  bin() {
    const at = Math.floor((performance.now() - this.since) / BIN);
    let bin = this.bins.get(at);
    if (!bin) {
      bin = {offered: 0, admitted: 0, delayed: 0, rejected: 0, shadowed: 0, level: null, size: null};
      this.bins.set(at, bin);
      this.bins.delete(at - BINS - 20);
    }
    return bin;
  }

  caller(user) {
    if (!this.callers.has(user)) this.callers.set(user, Object.fromEntries(OUTCOMES.map(count => [count, 0])));
    return this.callers.get(user);
  }

  /** The bins up to now as columns for the charts, the outcomes stacked: [seconds, offered, rejected … admitted]. */
  stacked() {
    const last = Math.floor((performance.now() - this.since) / BIN);
    const columns = [[], [], [], [], [], []];
    for (let at = Math.max(0, last - BINS); at < last; at++) {
      const bin = this.bins.get(at);
      const admitted = bin?.admitted ?? 0;
      const delayed = admitted + (bin?.delayed ?? 0);
      const shadowed = delayed + (bin?.shadowed ?? 0);
      const rejected = shadowed + (bin?.rejected ?? 0);
      [(at * BIN) / 1000, bin?.offered ?? 0, rejected, shadowed, delayed, admitted]
        .forEach((value, i) => columns[i].push(value));
    }
    return columns;
  }

  /** [seconds, level, the most it can be]. */
  levels() {
    const columns = [[], [], []];
    for (const [at, bin] of [...this.bins].sort(([a], [b]) => a - b)) {
      if (bin.level !== null) {
        [(at * BIN) / 1000, bin.level, bin.size ?? this.size].forEach((value, i) => columns[i].push(value));
      }
    }
    return columns;
  }

  /** [seconds, milliseconds of calls that were not delayed, of delayed calls, milliseconds that are late]. */
  waited() {
    const from = this.seconds() - WINDOW;
    const first = this.waits.findIndex(([at]) => at >= from);
    this.waits.splice(0, first < 0 ? this.waits.length : first);
    return [0, 1, 2, 3].map(column => this.waits.map(wait => wait[column]));
  }
}
