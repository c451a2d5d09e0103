/** The sandbox's values for JSON schemas, checked by Ajv; and that no schema can make it work without end. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'chai';
import fc from 'fast-check';
import { ProviderError } from '../../../workers/providers/provider.ts';
import { sampleOfSchema } from '../../../workers/providers/sandbox/schema.ts';

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);

const TREE = {
  type: 'object',
  properties: { value: { type: 'integer' }, children: { type: 'array', items: { $ref: '#' } } },
  required: ['value', 'children'],
};

const SCHEMAS: Readonly<Record<string, unknown>> = {
  'an object of everything': {
    type: 'object',
    properties: {
      text: { type: 'string' },
      short: { type: 'string', maxLength: 3 },
      long: { type: 'string', minLength: 50 },
      level: { enum: ['low', 'high'] },
      fixed: { const: { a: [1] } },
      whole: { type: 'integer', minimum: 3, maximum: 3 },
      step: { type: 'integer', exclusiveMinimum: 7, multipleOf: 5 },
      part: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.01 },
      below: { type: 'number', maximum: -2.5 },
      flag: { type: 'boolean' },
      nothing: { type: 'null' },
      maybe: { type: ['string', 'null'] },
      list: { type: 'array', items: { type: 'number' }, minItems: 3, maxItems: 4 },
      distinct: {
        type: 'array',
        items: { type: 'integer', minimum: 1, maximum: 9 },
        minItems: 5,
        uniqueItems: true,
      },
      words: { type: 'array', items: { type: 'string' }, minItems: 3, uniqueItems: true },
      letters: { type: 'array', items: { enum: ['a', 'b', 'c'] }, minItems: 3, uniqueItems: true },
      pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false },
      '__proto__ like': { type: 'string' },
    },
    required: ['text', 'unnamed'],
  },
  alternatives: {
    anyOf: [{ type: 'object', properties: { kind: { const: 'a' } }, required: ['kind'] }, { type: 'string' }],
  },
  definitions: {
    $ref: '#/$defs/a',
    $defs: {
      a: { type: 'object', properties: { b: { $ref: '#/$defs/b' } }, required: ['b'] },
      b: { type: 'integer', minimum: 4 },
    },
  },
  'all of several': {
    allOf: [
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      { type: 'object', properties: { b: { type: 'integer' } }, required: ['b'] },
    ],
  },
  'recursion through a list': TREE,
  'recursion through an alternative': {
    type: 'object',
    properties: { next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } },
    required: ['next'],
    additionalProperties: false,
  },
  'additional properties': { type: 'object', additionalProperties: { type: 'integer' }, minProperties: 3 },
  true: true,
  'nothing said': {},
};

const PATTERNS = [
  '^[A-Z]{3}-\\d{4}$',
  '^(red|green|blue)$',
  '^\\+?[1-9]\\d{1,14}$',
  '^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$',
  '^#(?:[0-9a-fA-F]{3}){1,2}$',
  '^(?=[a-z_])[a-z_][a-z0-9_]*$',
  '^\\p{Lu}\\p{L}*$',
  'abc',
  '^v\\d+\\.\\d+(\\.\\d+)?$',
  '^[\\w.-]+$',
  '^.{5,10}$',
];

const KEYWORDS =
  'type const enum anyOf oneOf allOf $ref properties required additionalProperties minProperties items prefixItems minItems maxItems uniqueItems minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format'.split(
    ' ',
  );

describe('the sandbox’s values for a JSON schema', () => {
  for (const [name, schema] of Object.entries(SCHEMAS)) {
    it(`are valid for ${name}`, () => {
      const value = sampleOfSchema(schema);
      expect(ajv.validate(schema as object, value), `${JSON.stringify(value)}: ${ajv.errorsText()}`).to.equal(
        true,
      );
      expect(sampleOfSchema(schema)).to.deep.equal(value);
    });
  }

  for (const format of [
    'date-time',
    'date',
    'time',
    'duration',
    'email',
    'hostname',
    'ipv4',
    'ipv6',
    'uri',
    'uri-reference',
    'uuid',
    'regex',
    'json-pointer',
  ]) {
    it(`are valid for the format ${format}`, () => {
      expect(ajv.validate({ type: 'string', format }, sampleOfSchema({ type: 'string', format }))).to.equal(
        true,
      );
    });
  }

  for (const pattern of PATTERNS) {
    it(`match ${pattern}`, () => {
      expect(sampleOfSchema({ type: 'string', pattern })).to.match(new RegExp(pattern, 'u'));
    });
  }

  it('meet length and pattern together', () => {
    expect(sampleOfSchema({ type: 'string', pattern: '^[a-z]+$', minLength: 20 })).to.match(/^[a-z]{20,}$/);
  });

  it('are valid for schemas put together at random', () => {
    const leaf = fc.constantFrom<object>(
      { type: 'string' },
      { type: 'string', minLength: 4, maxLength: 9 },
      { type: 'integer', minimum: -5, maximum: 5 },
      { type: 'number', exclusiveMinimum: 1 },
      { type: 'boolean' },
      { type: 'null' },
      { enum: [1, 'two', null] },
    );
    const { schema } = fc.letrec<{ schema: object }>((tie) => ({
      schema: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        leaf,
        fc.record({
          type: fc.constant('array'),
          items: tie('schema'),
          minItems: fc.nat(2),
          maxItems: fc.constant(3),
        }),
        fc
          .dictionary(fc.constantFrom('a', 'b', 'c'), tie('schema'))
          .map((properties) => ({ type: 'object', properties, required: Object.keys(properties) })),
        fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
      ),
    }));
    fc.assert(
      fc.property(schema, (given) => {
        expect(ajv.validate(given, sampleOfSchema(given))).to.equal(true);
      }),
      { numRuns: 60 },
    );
  });

  it('are made of schemas that are none as well', () => {
    expect(sampleOfSchema({ $ref: '#/%' })).to.equal('[sandbox] text');
    expect(sampleOfSchema({ type: [{ toString: 1, valueOf: 1 }] })).to.equal(null);
    expect(sampleOfSchema({ $ref: '#/%', '%': { type: 'null' } })).to.equal(null);
    for (const nonsense of [{ toString: 1, valueOf: 1 }, [null], 1, true, null, '', [[]]])
      for (const key of KEYWORDS)
        for (const type of [undefined, 'string', 'number', 'integer', 'array', 'object'])
          expect(
            () => sampleOfSchema({ type, [key]: nonsense }),
            `${key}: ${JSON.stringify(nonsense)}`,
          ).not.to.throw();
  });

  it('end soon, whatever the schema', () => {
    const wide = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, index) => [`p${index}`, { $ref: '#' }]),
    );
    const hostile: unknown[] = [
      { $ref: '#' },
      { allOf: [{ $ref: '#' }] },
      { anyOf: [{ $ref: '#' }] },
      { type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] },
      { type: 'object', properties: wide, required: Object.keys(wide) },
      { type: 'array', minItems: 1e9, items: { type: 'integer' } },
      { type: 'array', minItems: 4_000, items: { type: 'string', minLength: 20_000 } },
      { type: 'string', minLength: 1e9 },
      { type: 'object', minProperties: 1e9 },
      { type: 'array', minItems: 4_000, items: { const: 'x'.repeat(10_000) } },
    ];
    const startedAt = performance.now();
    for (const schema of hostile) {
      expect(() => sampleOfSchema(schema))
        .to.throw(ProviderError)
        .with.property('kind', 'rejected');
    }
    for (const pattern of [
      '(a{9999}){9999}',
      '('.repeat(5_000),
      '[',
      '\\',
      '(?<n',
      'a{1000000000}',
      '\\u{ffffffff}',
      '*',
      '(?:(?:(?:a{99}){99}){99}){99}',
    ]) {
      expect(String(sampleOfSchema({ type: 'string', pattern })).length).to.be.at.most(20_000);
    }
    expect(performance.now() - startedAt).to.be.below(1_500);
  });
});
