import {ask} from './calls.js';

/** Calls of this application to a partner, who limits them. */
const button = document.getElementById('partner-run');
const says = document.getElementById('partner-says');
const timeline = document.getElementById('partner-timeline');
const STEP = 100; // milliseconds a bar

button.addEventListener('click', async () => {
  button.disabled = true;
  says.textContent = 'Forty calls are in flight.';
  try {
    const response = await ask('partner/run', {method: 'POST'});
    if (!response.ok) throw new Error(`status ${response.status}.`);
    show(await response.json());
  } catch (failure) {
    says.textContent = `The calls failed: ${failure.message}`;
  } finally {
    button.disabled = false;
  }
});

button.disabled = false;

function show(run) {
  for (const what of ['sent', 'delayed', 'refused']) {
    document.querySelector(`[data-partner=${what}]`).textContent = run[what];
  }
  const seconds = (Math.max(...run.answeredAt) / 1000).toFixed(1);
  says.textContent = `All responses came within ${seconds} s.`;
  draw(run.answeredAt);
  timeline.setAttribute('aria-label', `${run.sent} calls answered within ${seconds} s`);
}

/** A mark for each second, or for as many as there is room for. */
function axis(millis) {
  const seconds = millis / 1000;
  const step = Math.max(1, Math.ceil(seconds / 8));
  const marks = [];
  for (let second = 0; second <= seconds; second += step) {
    const mark = Object.assign(document.createElement('span'), {textContent: `${second} s`});
    mark.classList.toggle('end', second > 0.95 * seconds);
    mark.style.insetInlineStart = `${(100 * second) / seconds}%`;
    marks.push(mark);
  }
  document.getElementById('partner-axis').replaceChildren(...marks);
}

/** A bar for each step of time, as high as calls were answered in it. */
function draw(answeredAt) {
  const bars = new Array(Math.floor(Math.max(...answeredAt) / STEP) + 1).fill(0);
  for (const at of answeredAt) bars[Math.floor(at / STEP)]++;
  const highest = Math.max(...bars);
  document.getElementById('partner-most').textContent = `at most ${highest}`;
  axis(bars.length * STEP);
  timeline.setAttribute('viewBox', `0 0 ${bars.length} ${highest}`);
  timeline.replaceChildren(...bars.map((calls, i) => {
    const bar = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    const place = {x: i + 0.1, y: highest - calls, width: 0.8, height: calls};
    for (const [name, value] of Object.entries(place)) bar.setAttribute(name, value);
    return bar;
  }));
}
