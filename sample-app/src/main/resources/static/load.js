/** Callers, the greedy one first. */
export const CALLERS = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank', 'grace', 'heidi', 'ivan', 'judy'];

const BURST_EVERY = 3;
const SINE_PERIOD = 6;

/** How many calls a load has offered after so many seconds, at so many calls a second on average. */
export const SHAPES = {
  steady: (seconds, calls) => calls * seconds,
  burst: (seconds, calls) => (Math.floor(seconds / BURST_EVERY) + 1) * calls * BURST_EVERY,
  sine: (seconds, calls) =>
    calls * (seconds - (SINE_PERIOD / (2 * Math.PI)) * Math.sin((2 * Math.PI * seconds) / SINE_PERIOD)),
  greedy: (seconds, calls) => calls * seconds,
};

/** Who makes the n-th call: the greedy one makes every other, the nine share the rest. */
export function caller(shape, n) {
  if (shape !== 'greedy' || n % 2 === 0) return CALLERS[0];
  return CALLERS[1 + ((n - 1) / 2) % (CALLERS.length - 1)];
}

/** Offers calls of a shape until it is stopped. Changes of `load` take effect at once. */
export class Load {

  /** @param load {shape, calls} as the controls say now; @param offer called with the caller's name for every call */
  constructor(load, offer) {
    this.load = load;
    this.offer = offer;
    this.made = 0;
  }

  start() {
    this.since = performance.now();
    this.offered = 0;
    this.timer = setInterval(() => this.tick(), 20);
    this.tick();
  }

  stop() {
    clearInterval(this.timer);
  }

  /** A change of shape or pace begins a new count, so that it neither skips calls nor makes them up. */
  restart() {
    this.since = performance.now();
    this.offered = 0;
  }

  tick() {
    const {shape, calls} = this.load();
    const due = Math.floor(SHAPES[shape]((performance.now() - this.since) / 1000, calls));
    // A page that slept in the background does not catch up on what it missed.
    this.offered = Math.max(this.offered, due - 500);
    while (this.offered < due) {
      this.offered++;
      this.offer(caller(shape, this.made++));
    }
  }
}
