import {ALGORITHMS, byId, limitName} from './algorithms.js';
import {Unreachable, quota} from './calls.js';
import {CALLERS, Load} from './load.js';
import {Panel} from './panel.js';

const form = document.getElementById('controls');
const field = form.elements;
const start = document.getElementById('start');
const status = document.getElementById('status');
const panels = [];
let load = null;
let drawing = null;
let asking = null;
let changing = null;
let paused = false;
let suited = {};
/** Calls without a response, after which no more are made: as many as the largest burst. The browser would keep them to itself. */
const MOST_OPEN = 300;
// On a phone the charts are below the controls; the button stays in sight.
const narrow = matchMedia('(max-width: 899px)');

for (const select of [field.algorithm, field.second]) {
  const charged = Object.assign(document.createElement('optgroup'), {label: 'Cost known afterwards'});
  for (const {id, name, charge} of ALGORITHMS) (charge ? charged : select).append(new Option(name, id));
  select.append(charged);
}
field.second.value = 'leaky-bucket';

/** The attributes of the limit that have a meaning for an algorithm, as the annotation and the actuator spell them. */
function settings(algorithm) {
  const values = {
    rate: `${field.rate.value}/${field.period.value}`,
    burst: Number(field.burst.value),
    warmup: `${field.warmup.value}s`,
    maxConcurrent: Number(field.maxConcurrent.value),
    minConcurrent: Number(field.minConcurrent.value),
    lateAfter: `${field.lateAfter.value}ms`,
  };
  const used = Object.fromEntries(Object.entries(values).filter(([attribute]) => algorithm.uses.includes(attribute)));
  used.policy = policy(algorithm);
  if (used.policy === 'WAIT') used.maxWait = `${field.maxWait.value}ms`;
  return used;
}

/** What happens to a call over the limit: as the controls say, else the default of the algorithm. */
function policy({waits}) {
  return field.policy.value || (waits ? 'WAIT' : 'REJECT');
}

function chosen() {
  return [byId(field.algorithm.value), ...(field.compare.checked ? [byId(field.second.value)] : [])];
}

/** Shows the controls that have a meaning, and a panel for each chosen algorithm. */
function arrange() {
  const algorithms = chosen();
  document.getElementById('second-field').hidden = !field.compare.checked;
  for (const element of form.querySelectorAll('[data-attribute]')) {
    show(element, algorithms.some(algorithm => algorithm.uses.includes(element.dataset.attribute)));
  }
  show(document.getElementById('max-wait-field'), algorithms.some(algorithm => policy(algorithm) === 'WAIT'));
  document.querySelector('#fresh + span').textContent = algorithms.every(({finds}) => finds)
    ? 'Start at the upper bound' : 'Start with unused limits';
  document.getElementById('calls-shown').value = field.calls.value;
  if (panels.map(panel => panel.algorithm.id).join() !== algorithms.map(algorithm => algorithm.id).join()) {
    panels.splice(0).forEach(panel => panel.remove());
    panels.push(...algorithms.map(algorithm => new Panel(algorithm, document.getElementById('panels'))));
    document.getElementById('panels').classList.toggle('two', panels.length === 2);
  }
  panels.forEach(panel => panel.describe(settings(panel.algorithm)));
}

function show(element, shown) {
  element.hidden = !shown;
  element.querySelectorAll('input').forEach(input => { input.disabled = !shown; });
}

/** Makes the limits what the controls say. */
async function apply() {
  await Promise.all(panels.map(panel => panel.change(settings(panel.algorithm))));
}

function say(text, wrong = false) {
  status.textContent = text;
  status.classList.toggle('wrong', wrong);
}

function valid() {
  const wrong = [...field].find(input => input.willValidate && !input.checkValidity());
  form.querySelectorAll('[aria-invalid]').forEach(input => input.removeAttribute('aria-invalid'));
  if (wrong) {
    wrong.setAttribute('aria-invalid', 'true');
    say(`${wrong.labels[0].firstChild.textContent.trim()}: ${wrong.validationMessage}`, true);
  }
  return !wrong;
}

/** The button rests, but keeps the focus: a disabled one would lose it. */
function pause(rests) {
  paused = rests;
  start.setAttribute('aria-disabled', String(rests));
}

/** Shows what the first caller has left of every limit. */
async function ask() {
  const left = await quota(CALLERS[0]).catch(() => null);
  if (!left) return;
  document.getElementById('left').replaceChildren(...left.map(({limit, remaining}) => {
    const row = document.createElement('div');
    row.append(
      Object.assign(document.createElement('dt'), {textContent: limit}),
      Object.assign(document.createElement('dd'), {textContent: `${remaining} `}));
    const unit = ALGORITHMS.find(algorithm => limitName(algorithm) === limit)?.unit ?? 'permit';
    row.lastChild.append(Object.assign(document.createElement('small'), {textContent: remaining === 1 ? unit : `${unit}s`}));
    return row;
  }));
}

/** While calls are made, what is left is asked for as soon as the last response is shown. */
async function askAgain() {
  await ask();
  if (load) asking = setTimeout(askAgain, 250);
}

async function run() {
  if (!valid()) return;
  pause(true);
  try {
    await apply();
    const greedy = field.load.value === 'greedy';
    await Promise.all(panels.map(panel => panel.begin(greedy ? CALLERS : CALLERS.slice(0, 1), field.fresh.checked)));
  } catch (error) {
    say(error.message, true);
    pause(false);
    return;
  }
  load = new Load(
    () => ({shape: field.load.value, calls: Number(field.calls.value)}),
    user => panels.every(panel => panel.pending.size < MOST_OPEN)
      && panels.forEach(panel => panel.offer(user, failed)));
  load.start();
  drawing = setInterval(() => panels.forEach(panel => panel.draw()), 100);
  askAgain();
  pause(false);
  start.textContent = 'Stop';
  start.classList.add('running');
  if (narrow.matches) panels[0].root.scrollIntoView();
  say('Running. Change anything: the limit follows, and used permits stay used.');
}

/** A call failed. Without the application there is no run. */
function failed(error) {
  if (load && error instanceof Unreachable) halt(error);
  else if (load) say(error.message, true);
}

/** @param failure why the run ends, if not by the button */
async function halt(failure) {
  const running = load;
  load = null;
  running.stop();
  pause(true);
  if (failure) say(failure.message, true);
  else say('Waiting for the last responses.');
  clearTimeout(asking);
  await Promise.all(panels.map(panel => panel.end()));
  clearInterval(drawing);
  await ask();
  await Promise.all(panels.map(panel => panel.restore())).catch(error => { failure ??= error; });
  pause(false);
  start.textContent = 'Start';
  start.classList.remove('running');
  if (failure) say(failure.message, true);
  else say(`Stopped after ${panels[0].series.totals.offered} calls.`);
}

form.addEventListener('submit', event => {
  event.preventDefault();
  if (!paused) (load ? halt() : run());
});

/** The controls as they suit the algorithms: calls of many permits need a larger limit than others, a pool a larger load. */
function suit() {
  const suits = Object.assign({}, ...chosen().map(algorithm => algorithm.suits));
  for (const name of new Set([...Object.keys(suited), ...Object.keys(suits)])) {
    if (suits[name] !== suited[name]) field[name].value = suits[name] ?? field[name].defaultValue;
  }
  suited = suits;
}

form.addEventListener('input', async event => {
  const of = event.target.name;
  if (['algorithm', 'second', 'compare'].includes(of)) {
    if (load && !paused) await halt();
    if (of === 'algorithm') field.policy.value = '';
    suit();
  }
  if (chosen().some(({finds}) => finds)) field.minConcurrent.max = field.maxConcurrent.value;
  if (!valid()) return;
  arrange();
  if (!load) {
    say('Ready.');
  } else if (['load', 'calls'].includes(of)) {
    load.restart();
  } else {
    clearTimeout(changing);
    changing = setTimeout(() => load && apply().then(
      () => say('Running. The limit was changed; used permits stay used.'),
      failed), 300);
  }
});

addEventListener('pagehide', () => load && panels.forEach(panel => panel.restore().catch(() => {})));

const theme = document.getElementById('theme');
const system = matchMedia('(prefers-color-scheme: dark)');

function dark() {
  const own = document.documentElement.dataset.theme;
  return own ? own === 'dark' : system.matches;
}

function restyle() {
  theme.setAttribute('aria-pressed', String(dark()));
  panels.forEach(panel => panel.restyle());
}

theme.addEventListener('click', () => {
  const chosen = dark() ? 'light' : 'dark';
  document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem('theme', chosen);
  } catch {
    // A browser that keeps nothing: the choice is of this visit.
  }
  restyle();
});
system.addEventListener('change', restyle);

arrange();
restyle();
ask();
