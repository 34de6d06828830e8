/**
 * What the page knows about each algorithm. `uses` are the attributes that have a meaning for it, as the annotation
 * spells them; `level` says what its chart shows: what remains, or what `tells` names: the reset for
 * those that space calls out. `unit` is what the caller has left, unless permits.
 * The one that `finds` its limit has no key: it counts all calls together. `suits` are the controls it starts with: the longest
 * wait in the queue of a leaky bucket is its burst by its rate, and a shorter maximum wait would reject calls before it is full.
 * The one with `charge` is not an algorithm but a call that is charged when it is complete: its annotation has `also`, and
 * its level is computed from the reset, which alone says how deep a debt is.
 */
export const ALGORITHMS = [
  {
    id: 'token-bucket', name: 'Token bucket', uses: ['rate', 'burst'], level: 'Tokens in the bucket',
    says: 'Tokens are added at the rate, up to the burst; each call takes one. An idle caller can send a burst back to back, then the rate holds.',
  },
  {
    id: 'leaky-bucket', name: 'Leaky bucket', uses: ['rate', 'burst'], level: 'Seconds until the queue is empty', tells: 'reset', waits: true,
    suits: {maxWait: 3000},
    says: 'A queue that admits one call at a time, evenly spaced. A call that finds it full, or would wait too long, is rejected.',
  },
  {
    id: 'warm-up', name: 'Warm-up', uses: ['rate', 'warmup'], level: 'Seconds until a call is admitted immediately', tells: 'reset',
    says: 'Starts at a third of its rate and reaches all of it within the warm-up; an idle period makes it cold again.',
  },
  {
    id: 'smooth-bursty', name: 'Smooth bursty', uses: ['rate', 'burst'], level: 'Stored permits',
    says: 'Evenly spaced, and unused permits are stored up to the burst; none are stored when the application starts.',
  },
  {
    id: 'gcra', name: 'GCRA', uses: ['rate', 'burst'], level: 'Remaining permits',
    says: 'The leaky bucket as a meter: admits the same calls as the token bucket.',
  },
  {
    id: 'fixed-window', name: 'Fixed window', uses: ['rate'], level: 'Left in this window',
    says: 'Counts calls in each period of the wall clock. Simple, but two bursts around a boundary can together use twice the limit.',
  },
  {
    id: 'sliding-window', name: 'Sliding window', uses: ['rate'], level: 'Left in the last period',
    says: 'Counts calls of the last period in ten slots; permits refill slot by slot, and the limit is never exceeded.',
  },
  {
    id: 'sliding-log', name: 'Sliding log', uses: ['rate'], level: 'Left in the last period',
    says: 'Stores the time of every call: exact in any period, but needs more memory.',
  },
  {
    id: 'concurrency', name: 'Concurrency', uses: ['maxConcurrent'], level: 'Free permits',
    says: 'Limits how many calls run concurrently, however many there are per second.',
  },
  {
    id: 'adaptive', name: 'Adaptive', uses: ['maxConcurrent', 'minConcurrent', 'lateAfter'], finds: true, tells: 'found',
    level: 'Calls in flight', suits: {maxConcurrent: 60, calls: 60},
    says: 'Limits how many calls run concurrently, and adapts the number to the load. These share six connections, each for 200 ms: they serve 30 calls per second, and more calls only wait. In the first seconds most responses are late: the limit starts at its upper bound and comes down.',
  },
  {
    id: 'model', name: 'Tokens of a model', algorithm: 'token-bucket', charge: true, tells: 'reset', uses: ['rate', 'burst'], suits: {rate: 100, burst: 100},
    level: 'Tokens left; below zero is debt', unit: 'token', also: {permits: '#maxTokens', charge: '#result.usage.totalTokens'},
    says: 'Each call reserves 10 tokens and uses 1 to 30, which is known when it is complete. Unused tokens are refunded; more are charged, if need be as debt.',
  },
];

export const byId = id => ALGORITHMS.find(algorithm => algorithm.id === id);

/** The name of the demo's limit. */
export const limitName = algorithm => `demo-${algorithm.id}`;
