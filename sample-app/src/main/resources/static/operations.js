/** What an operator does, done the way an operator does it: through the actuator. */
import {limitName} from './algorithms.js';
import {ask} from './calls.js';

const ENDPOINT = 'actuator/ratelimits';

/** Changes a limit while it is in use; what was spent stays spent. */
export async function change(algorithm, settings) {
  const response = await ask(`${ENDPOINT}/${limitName(algorithm)}`, {
    method: 'POST',
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify(settings),
  });
  if (!response.ok) throw new Error(`the limit was not changed: ${await reason(response)}`);
}

/** Gives a limit back what the configuration says, and tries no rates next to it, also while the page is being closed. */
export async function restore(algorithm) {
  const [response] = await Promise.all(['{"revert": true}', '{"candidates": "off"}'].map(body =>
    ask(`${ENDPOINT}/${limitName(algorithm)}`, {
      method: 'POST',
      headers: {'Content-Type': 'application/json'},
      body,
      keepalive: true,
    })));
  if (!response.ok) throw new Error(`the limit was not restored: ${await reason(response)}`);
}

/** Tries rates next to the limit; they reject nobody. Ends by itself, should the page not be able to end it. */
export function tryRates(algorithm, rates) {
  return change(algorithm, {candidates: rates.join(', '), for: '1h'});
}

/** What the tried rates would have rejected until now: [{rate, rejected}], in percent. */
export async function triedRates(algorithm) {
  const response = await ask(`${ENDPOINT}/${limitName(algorithm)}`);
  if (!response.ok) throw new Error(`the limit was not read: ${await reason(response)}`);
  return (await response.json()).candidates?.rates ?? [];
}

/** Forgets what a caller has used. */
export async function forget(algorithm, user) {
  const response = await ask(`${ENDPOINT}/${limitName(algorithm)}/${user}`, {method: 'DELETE'});
  if (!response.ok) throw new Error(`the limit was not reset: ${await reason(response)}`);
}

/** What a caller could still have at once, how long until that is most, or what a limit has found. Asking changes nothing. */
export async function level(algorithm, user) {
  const response = await ask(`${ENDPOINT}/${limitName(algorithm)}${algorithm.finds ? '' : `/${user}`}`);
  if (!response.ok) throw new Error(`the limit was not read: ${await reason(response)}`);
  return (await response.json())[algorithm.tells ?? 'remaining'];
}

/** What the meters have counted for a limit so far: {admitted, delayed, rejected, shadowed}, and permits if it charges. */
export async function meters(algorithm) {
  const counted = {admitted: 0, delayed: 0, rejected: 0, shadowed: 0};
  if (algorithm.charge) Object.assign(counted, {reserved: 0, returned: 0, added: 0});
  const response = await ask('actuator/prometheus', {headers: {Accept: 'text/plain'}});
  if (!response.ok) throw new Error(`no meters: ${await reason(response)}`);
  for (const line of (await response.text()).split('\n')) {
    if (/^rate_limit_(decisions|permits)_total{/.test(line) && line.includes(`limit="${limitName(algorithm)}"`)) {
      counted[/(?:outcome|kind)="(\w+)"/.exec(line)[1]] += Number(line.slice(line.lastIndexOf(' ')));
    }
  }
  return counted;
}

async function reason(response) {
  const text = await response.text();
  try {
    const body = JSON.parse(text);
    return body.detail ?? body.message ?? body.error ?? text;
  } catch {
    return text || String(response.status);
  }
}
