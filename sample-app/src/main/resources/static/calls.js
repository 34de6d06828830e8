/**
 * Real calls to the application. A browser opens six connections to a host, so that calls that wait would hold back
 * those behind them; every *.localhost is this machine too, and a host of its own.
 */
const hosts = location.hostname === 'localhost' && location.protocol === 'http:'
  ? Array.from({length: 20}, (_, i) => `http://h${i}.localhost:${location.port || 80}`)
  : [''];
const STATUS = {200: 'OK', 429: 'Too Many Requests', 503: 'Service Unavailable'};
let next = 0;

/** The server does not respond, so that more calls are of no use. */
export class Unreachable extends Error {}

/** As fetch, but a server that is gone is named. The browsers' own messages differ, and none says what to do. */
export async function ask(url, options) {
  try {
    return await fetch(url, options);
  } catch {
    throw new Unreachable('The application does not respond. Check that it is running, then press Start again.');
  }
}

/**
 * Makes one call. Resolves to {outcome, took, waited, reserved, charged, r, q, status, headers}; the outcomes are those of
 * the meters, `took` the milliseconds in the application, where it says that.
 */
export async function call(algorithm, user) {
  const host = hosts[next++ % hosts.length];
  const response = await ask(`${host}/demo/${algorithm.id}?user=${user}`, {cache: 'no-store'});
  const body = await response.json().catch(() => ({}));
  const limit = response.headers.get('RateLimit') ?? '';
  const policy = response.headers.get('RateLimit-Policy') ?? '';
  const refused = response.status === 429 || (response.status === 503 && algorithm.finds);
  if (response.status !== 200 && !refused) {
    throw new Error(`/demo/${algorithm.id} answered ${response.status}`);
  }
  return {
    outcome: refused ? 'rejected' : body.outcome,
    took: (body.waitedMillis ?? 0) + (body.tookMillis ?? 0),
    waited: body.waitedMillis ?? 0,
    reserved: body.reserved ?? 0,
    charged: body.usage?.totalTokens ?? 0,
    r: parameter(limit, 'r'),
    q: parameter(policy, 'q'),
    status: `HTTP/1.1 ${response.status} ${STATUS[response.status]}`,
    headers: ['RateLimit-Policy', 'RateLimit', 'Retry-After', 'Content-Type']
      .filter(name => response.headers.has(name))
      .map(name => `${name}: ${response.headers.get(name)}`),
    detail: JSON.stringify(body),
  };
}

/** What a caller has left of each limit of the demo: [{limit, remaining, reset}]. */
export async function quota(user) {
  const response = await ask(`quota?user=${user}`, {cache: 'no-store'});
  if (!response.ok) throw new Error(`/quota answered ${response.status}`);
  return response.json();
}

/** An integer parameter of the first member of a structured field: r of `"name";r=4;t=1`. */
function parameter(field, name) {
  const found = new RegExp(`;\\s*${name}=(\\d+)`).exec(field);
  return found ? Number(found[1]) : null;
}
