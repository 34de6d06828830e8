import {limitName} from './algorithms.js';

/** The annotation that makes exactly this limit. */
export function annotation(algorithm, settings) {
  const attributes = [
    `name = "${limitName(algorithm)}"`,
    `algorithm = Algorithm.${algorithm.id.toUpperCase().replaceAll('-', '_')}`,
  ];
  for (const [attribute, value] of Object.entries(settings)) {
    if (attribute === 'policy') {
      if (value !== (algorithm.waits ? 'WAIT' : 'REJECT')) attributes.push(`policy = Policy.${value}`);
    } else {
      attributes.push(`${attribute} = ${typeof value === 'number' ? value : `"${value}"`}`);
    }
  }
  attributes.push('key = "#user"');
  return `@RateLimited(\n    ${attributes.join(',\n    ')})`;
}

/** The same limit for application.yml; the annotation is then @RateLimited("…"). */
export function yml(algorithm, settings) {
  const lines = [`algorithm: ${algorithm.id}`];
  for (const [attribute, value] of Object.entries(settings)) {
    const name = attribute.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`);
    lines.push(`${name}: ${attribute === 'policy' ? value.toLowerCase() : value}`);
  }
  lines.push('key: "#user"');
  return `rate-limit:\n  limits:\n    ${limitName(algorithm)}:\n${lines.map(line => `      ${line}`).join('\n')}`;
}
