import {limitName} from './algorithms.js';

/** The annotation that makes exactly this limit. */
export function annotation(algorithm, settings) {
  const attributes = [
    `name = "${limitName(algorithm)}"`,
    `algorithm = Algorithm.${nameOf(algorithm).toUpperCase().replaceAll('-', '_')}`,
  ];
  for (const [attribute, value] of Object.entries(settings)) {
    if (attribute === 'policy') {
      if (value !== (algorithm.waits ? 'WAIT' : 'REJECT')) attributes.push(`policy = Policy.${value}`);
    } else {
      attributes.push(`${attribute} = ${typeof value === 'number' ? value : `"${value}"`}`);
    }
  }
  for (const [attribute, value] of Object.entries(ofCalls(algorithm))) attributes.push(`${attribute} = "${value}"`);
  return `@RateLimited(\n    ${attributes.join(',\n    ')})`;
}

/** The same limit for application.yml; the annotation is then @RateLimited("…"). */
export function yml(algorithm, settings) {
  const lines = [`algorithm: ${nameOf(algorithm)}`];
  for (const [attribute, value] of Object.entries(settings)) {
    const name = attribute.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`);
    lines.push(`${name}: ${attribute === 'policy' ? value.toLowerCase() : value}`);
  }
  for (const [attribute, value] of Object.entries(ofCalls(algorithm))) lines.push(`${attribute}: "${value}"`);
  return `rate-limit:\n  limits:\n    ${limitName(algorithm)}:\n${lines.map(line => `      ${line}`).join('\n')}`;
}

const nameOf = algorithm => algorithm.algorithm ?? algorithm.id;

/** The expressions that look into a call. */
const ofCalls = algorithm => ({key: '#user', ...algorithm.also});
