import {limitName} from './algorithms.js';

/** The annotation that makes exactly this limit. */
export function annotation(algorithm, settings) {
  const attributes = [
    `name = "${limitName(algorithm)}"`,
    `algorithm = Algorithm.${nameOf(algorithm).toUpperCase().replaceAll('-', '_')}`,
  ];
  for (const [attribute, value] of Object.entries(settings)) {
    if (ONLY_YML.includes(attribute)) continue;
    if (attribute === 'policy') {
      if (value !== (algorithm.waits ? 'WAIT' : 'REJECT')) attributes.push(`policy = Policy.${value}`);
    } else {
      attributes.push(`${attribute} = ${typeof value === 'number' ? value : `"${value}"`}`);
    }
  }
  for (const [attribute, value] of Object.entries(ofCalls(algorithm))) attributes.push(`${attribute} = "${value}"`);
  const stated = `@RateLimited(\n    ${attributes.join(',\n    ')})`;
  return algorithm.finds ? `${comment(algorithm, settings)}\n${stated}` : stated;
}

/** What an annotation does not have. */
function comment(algorithm, settings) {
  const rest = Object.entries(settings).filter(([attribute]) => ONLY_YML.includes(attribute)).map(property);
  const lines = [`rate-limit.limits.${limitName(algorithm)}:`, ...[...rest, MEMORY].map(line => `  ${line}`)];
  return ['The rest, in application.yml:', ...lines].map(line => `// ${line}`).join('\n');
}

/** The same limit for application.yml; the annotation is then @RateLimited("…"). */
export function yml(algorithm, settings) {
  const lines = [`algorithm: ${nameOf(algorithm)}`, ...Object.entries(settings).map(property)];
  if (algorithm.finds) lines.push(MEMORY);
  for (const [attribute, value] of Object.entries(ofCalls(algorithm))) lines.push(`${attribute}: "${value}"`);
  return `rate-limit:\n  limits:\n    ${limitName(algorithm)}:\n${lines.map(line => `      ${line}`).join('\n')}`;
}

/** An attribute as application.yml spells it. */
function property([attribute, value]) {
  const name = attribute.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`);
  return `${name}: ${attribute === 'policy' ? value.toLowerCase() : value}`;
}

/** Attributes that the annotation does not have. */
const ONLY_YML = ['minConcurrent', 'lateAfter'];

/** Of a limit that is of one process, also where the backend of the others is Redis. */
const MEMORY = 'backend: memory';

const nameOf = algorithm => algorithm.algorithm ?? algorithm.id;

/** The expressions that look into a call. */
const ofCalls = ({finds, also}) => (finds ? {} : {key: '#user', ...also});
