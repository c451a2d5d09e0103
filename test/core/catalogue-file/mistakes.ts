/**
 * Catalogue files with a mistake: what is wrong, the text with ▸ where each problem stands, and what is said there, in the
 * order of the file. Two problems of one place are two ▸.
 */
export type Mistake = readonly [title: string, markedText: string, ...said: string[]];

const WHOLE = 'must be a whole number from';
const A_PRICE = 'a whole number from 0 to 100000000';
const A_NAME = 'a name of up to 128 letters, digits and . _ : / @ + - that begins with a letter or digit';
const AN_ADDRESS = 'an http:// or https:// address without credentials, query or fragment';
const A_SIZE = 'WIDTHxHEIGHT in pixels, such as 1024x1024';
const A_QUALITY = 'a word such as low, medium or high';
const THE_FILE = 'the file must be a map with providers, models, voices';
const ENV = 'the NAME of an environment variable (capitals, digits, _), never the credential itself';

const provider = (entry: string): string => `providers:\n  - ${entry}\n`;
const model = (entry: string): string => `providers: [{name: p, kind: sandbox}]\nmodels:\n  - ${entry}\n`;
const routes = 'routes: [{provider: p, upstream_model: u}]';
const priced = (type: string, pricing: string): string =>
  model(`{id: m, type: ${type}, ${routes}, pricing: ${pricing}}`);
const chat = (fields: string): string => model(`{id: m, type: chat, ${routes}, ${fields}}`);
const voice = (entry: string): string => `${priced('speech', '{ap: 1}')}voices:\n  - ${entry}\n`;

const FORM: readonly Mistake[] = [
  ['an empty file', '▸', `${THE_FILE}, not empty`],
  ['an empty map', '▸{}', `${THE_FILE}, not an empty map`],
  ['a list', '▸- a', `${THE_FILE}, not a list`],
  [
    'an unknown section',
    'models: []\n▸prices: []\n',
    'unknown key "prices"; allowed here: providers, models, voices',
  ],
  ['a section that is no list', 'models: ▸{a: 1}', 'models must be a list, not a map'],
  ['a section without entries', 'models:▸\n', 'models must be a list, not empty'],
  ['a key given twice', 'models: []\n▸models: []\n', 'Map keys must be unique'],
  [
    'a bracket that never ends',
    'models: [\n▸',
    'Flow sequence in block collection must be sufficiently indented and end with a ]',
  ],
  [
    'a second document',
    'models: []\n▸---\nmodels: []\n',
    'Source contains multiple documents; please use YAML.parseAllDocuments()',
  ],
  ['an alias without its anchor', 'models: ▸*none\n', 'there is no anchor &none before this alias'],
  ['an unknown tag', 'models: ▸!secret x\n', 'Unresolved tag: !secret'],
];

const PROVIDERS: readonly Mistake[] = [
  [
    'a provider that is no map',
    'providers: [▸openai]',
    'an entry of providers must be a map that describes a provider, not "openai"',
  ],
  ['a provider without a name', provider('▸{kind: sandbox}'), `name is missing: ${A_NAME}`],
  ['a name with a space', provider('{name: ▸a b, kind: sandbox}'), `name must be ${A_NAME}, not "a b"`],
  ['a name that is a number', provider('{name: ▸7, kind: sandbox}'), `name must be ${A_NAME}, not 7`],
  [
    'an unknown kind',
    provider('{name: a, kind: ▸azure}'),
    'kind must be one of openai, elevenlabs, x, sandbox, not "azure"',
  ],
  [
    'a provider without its address',
    provider('▸{name: a, kind: x}'),
    'base_url is missing: a provider of kind x needs an http:// or https:// address',
  ],
  [
    'an address of another protocol',
    provider('{name: a, kind: x, base_url: ▸"ftp://a.example"}'),
    `base_url must be ${AN_ADDRESS}`,
  ],
  [
    'a password in an address, which is not repeated',
    provider('{name: a, kind: x, base_url: ▸"https://u:hidden@a.example"}'),
    `base_url must be ${AN_ADDRESS}`,
  ],
  [
    'a credential in place of its variable, which is not repeated',
    provider('{name: a, kind: sandbox, credential_env: ▸sk-hidden}'),
    `credential_env must be ${ENV}`,
  ],
  [
    'an unknown key of a provider',
    provider('{name: a, kind: sandbox, ▸url: x}'),
    'unknown key "url"; allowed here: name, kind, base_url, credential_env',
  ],
  [
    'a provider given twice',
    'providers:\n  - {name: a, kind: sandbox}\n  - {name: ▸a, kind: sandbox}\n',
    'provider "a" is given twice; the first is in line 2',
  ],
];

const MODELS: readonly Mistake[] = [
  [
    'routes of what the service itself does',
    model(`{id: gallery-submit, type: gateway, ▸${routes}, pricing: {ap: 1}}`),
    'unknown key "routes"; allowed here: id, type, pricing',
  ],
  [
    'another type of what the service itself does',
    model('{id: gallery-submit, type: ▸image, pricing: {ap: 1, size: 1x1, quality: low}}'),
    'type must be one of gateway, not "image"',
  ],
  [
    'a model given twice',
    `${priced('speech', '{ap: 1}')}  - {id: ▸m, type: speech, ${routes}, pricing: {ap: 2}}\n`,
    'model "m" is given twice; the first is in line 3',
  ],
  [
    'an unknown type',
    priced('▸text', '{ap: 1}'),
    'type must be one of chat, speech, transcription, image, video, gateway, not "text"',
  ],
  [
    'a chat model without its limits',
    model(`▸▸{id: m, type: chat, ${routes}, pricing: {ap_in_per_1k: 1, ap_out_per_1k: 2}}`),
    'max_tokens is missing: a whole number from 1 to 10000000',
    'context_tokens is missing: a whole number from 1 to 10000000',
  ],
  [
    'limits of a model of another type',
    model(`{id: m, type: speech, ▸max_tokens: 5, ${routes}, pricing: {ap: 1}}`),
    'unknown key "max_tokens"; allowed here: id, type, recommended, routes, pricing',
  ],
  [
    'more output than context',
    chat('max_tokens: ▸101, context_tokens: 100, pricing: {ap_in_per_1k: 1, ap_out_per_1k: 2}'),
    'max_tokens must not be above context_tokens (100), not 101',
  ],
  [
    'a recommendation in words',
    model(`{id: m, type: speech, recommended: ▸"yes", ${routes}, pricing: {ap: 1}}`),
    'recommended must be true or false, not "yes"',
  ],
  [
    'a second default of a type',
    `${model(`{id: m, type: speech, recommended: true, ${routes}, pricing: {ap: 1}}`)}  - {id: n, type: speech, recommended: ▸true, ${routes}, pricing: {ap: 2}}\n`,
    'a second recommended model of type speech, of which one is the default; the first is in line 3',
  ],
  ['no routes', model('▸{id: m, type: speech, pricing: {ap: 1}}'), 'routes is missing: a list of at least 1'],
  [
    'an empty list of routes',
    model('{id: m, type: speech, routes: ▸[], pricing: {ap: 1}}'),
    'routes must be a list of at least 1, not an empty list',
  ],
  [
    'a route to nowhere',
    model('{id: m, type: speech, routes: [{provider: ▸q, upstream_model: u}], pricing: {ap: 1}}'),
    'there is no provider "q"; there are: p',
  ],
  [
    'a route given twice',
    model(
      `{id: m, type: speech, pricing: {ap: 1},
     routes: [{provider: p, upstream_model: u}, ▸{provider: p, upstream_model: u, priority: 1}]}`,
    ),
    'route "p u" is given twice; the first is in line 4',
  ],
  [
    'a weight of nothing',
    model('{id: m, type: speech, routes: [{provider: p, upstream_model: u, weight: ▸0}], pricing: {ap: 1}}'),
    `weight ${WHOLE} 1 to 2147483647, not 0`,
  ],
];

const PRICES: readonly Mistake[] = [
  [
    'no pricing',
    model(`▸{id: m, type: speech, ${routes}}`),
    'pricing is missing: a price or a list of prices',
  ],
  [
    'an empty list of prices',
    priced('speech', '▸[]'),
    'pricing must be a price or a list of prices, not an empty list',
  ],
  ['a bare number for a price', priced('speech', '▸200'), 'pricing must be a map with ap, not 200'],
  [
    'a price for the tokens of a speech model',
    priced('speech', '▸{▸ap_in_per_1k: 1}'),
    `ap is missing: ${A_PRICE}`,
    'unknown key "ap_in_per_1k"; allowed here: ap, effective_at',
  ],
  [
    'half a chat price',
    chat('max_tokens: 1, context_tokens: 2, pricing: ▸{ap_in_per_1k: 1}'),
    `ap_out_per_1k is missing: ${A_PRICE}`,
  ],
  ['a negative price', priced('speech', '{ap: ▸-1}'), `ap must be ${A_PRICE}, not -1`],
  ['a fraction of an AP', priced('speech', '{ap: ▸0.5}'), `ap must be ${A_PRICE}, not 0.5`],
  ['a price in quotes', priced('speech', '{ap: ▸"1"}'), `ap must be ${A_PRICE}, not "1"`],
  [
    'an image price without size and quality',
    priced('image', '[▸▸{ap: 1}]'),
    `size is missing: ${A_SIZE}`,
    `quality is missing: ${A_QUALITY}`,
  ],
  [
    'a size that is none',
    priced('image', '[{ap: 1, size: ▸big, quality: low}]'),
    `size must be ${A_SIZE}, not "big"`,
  ],
  [
    'a price given twice',
    priced('image', '[{ap: 1, size: 1x1, quality: low},\n     ▸{ap: 2, size: 1x1, quality: low}]'),
    'price "1x1 low without effective_at" is given twice; the first is in line 3',
  ],
  [
    'one moment given twice, written in two ways',
    priced(
      'speech',
      '[{ap: 1, effective_at: 2030-01-01}, ▸{ap: 2, effective_at: "2030-01-01T09:00:00+09:00"}]',
    ),
    'price "from 2030-01-01T09:00:00+09:00" is given twice; the first is in line 3',
  ],
  [
    'a time without its zone',
    priced('speech', '{ap: 1, effective_at: ▸2030-01-01T00:00:00}'),
    'effective_at must be an ISO 8601 date or time with its zone, not "2030-01-01T00:00:00"',
  ],
];

const VOICES: readonly Mistake[] = [
  [
    'a voice of nobody',
    voice('{slug: v, name: V, provider: ▸q, upstream_voice: a, model: ▸n}'),
    'there is no provider "q"; there are: p',
    'there is no model "n"; there are: m',
  ],
  [
    'a voice of a model that does not speak',
    `${priced('gateway', '{ap: 1}')}voices: [{slug: v, name: V, provider: p, upstream_voice: a, model: ▸m}]`,
    'model "m" is of type gateway; a voice needs a speech model',
  ],
  [
    'a line break in a name',
    voice('{slug: v, name: ▸"a\\nb", provider: p, upstream_voice: a, model: m}'),
    'name must be one line of text, 1 to 200 characters, not "a\\nb"',
  ],
  [
    'a voice given twice',
    voice('{slug: v, name: V, provider: p, upstream_voice: a, model: m}').concat(
      '  - {slug: ▸v, name: V, provider: p, upstream_voice: b, model: m}\n',
    ),
    'voice "v" is given twice; the first is in line 5',
  ],
];

const SEVERAL: readonly Mistake[] = [
  [
    'a mistake in each section',
    [
      'providers:',
      '  - {name: p, kind: ▸nope}',
      'models:',
      '  - id: m',
      '    type: speech',
      '    ▸colour: red',
      '    routes: [{provider: ▸q, upstream_model: u}]',
      '    pricing: {ap: ▸-1}',
      'voices:',
      '  - {slug: v, name: V, provider: p, upstream_voice: a, model: ▸n}',
    ].join('\n'),
    'kind must be one of openai, elevenlabs, x, sandbox, not "nope"',
    'unknown key "colour"; allowed here: id, type, recommended, routes, pricing',
    'there is no provider "q"; there are: p',
    `ap must be ${A_PRICE}, not -1`,
    'there is no model "n"; there are: m',
  ],
  [
    'an unknown section before a mistake',
    '▸prices: []\nproviders: [{name: p, kind: ▸nope}]\n',
    'unknown key "prices"; allowed here: providers, models, voices',
    'kind must be one of openai, elevenlabs, x, sandbox, not "nope"',
  ],
  [
    'a mistake behind an anchor',
    'providers:\n  - &a {name: ▸p, kind: ▸nope}\n  - *a\n',
    'provider "p" is given twice; the first is in line 2',
    'kind must be one of openai, elevenlabs, x, sandbox, not "nope"',
  ],
];

export const MISTAKES: readonly Mistake[] = [
  ...FORM,
  ...PROVIDERS,
  ...MODELS,
  ...PRICES,
  ...VOICES,
  ...SEVERAL,
];

/** The text without its marks, and the line and column of each. */
export function readMarks(markedText: string): { readonly text: string; readonly places: readonly string[] } {
  const places: string[] = [];
  const lines = markedText.split('\n').map((line, index) => {
    const parts = line.split('▸');
    let column = 1;
    for (const part of parts.slice(0, -1)) {
      column += part.length;
      places.push(`${index + 1}:${column}`);
    }
    return parts.join('');
  });
  return { text: lines.join('\n'), places };
}
