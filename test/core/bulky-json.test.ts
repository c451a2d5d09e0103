/** JSON with files in it: what is decoded where it lies is the same as what a parser and a decoder make of it. */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { bytesOfBase64, parseBulkyJson } from '../../core/bulky-json.ts';

const LARGE = randomBytes(700_001);
const BASE64 = LARGE.toString('base64');

function field(text: string, name = 'image'): { bytes: Buffer | undefined; isLong: boolean } {
  const { value, isLong, bytesOf } = parseBulkyJson(Buffer.from(text));
  const sent = (value as Record<string, string>)[name] ?? '';
  return { isLong: isLong(sent), bytes: bytesOf(sent) };
}

describe('JSON with files in it', () => {
  it('is parsed as any other where its strings are short', () => {
    for (const text of [
      '{}',
      '[1, "a\\"b\\\\", {"c": null}]',
      '"é\\u00e9"',
      ' 7 ',
      `{"p": "${'x'.repeat(1000)}"}`,
    ]) {
      expect(parseBulkyJson(Buffer.from(text)).value).to.deep.equal(JSON.parse(text));
    }
  });

  it('gives long strings as bytes, wherever they stand', () => {
    const others = [
      LARGE,
      Buffer.concat([LARGE, Buffer.from('1')]),
      Buffer.concat([LARGE, Buffer.from('12')]),
    ];
    const sent = { a: 'é"\\', images: others.map((bytes) => bytes.toString('base64')), z: [{ y: 1 }] };
    const { value, isLong, bytesOf } = parseBulkyJson(Buffer.from(JSON.stringify(sent)));
    const { images, ...rest } = value as typeof sent;
    expect(rest).to.deep.equal({ a: 'é"\\', z: [{ y: 1 }] });
    expect(images.every(isLong)).to.equal(true);
    for (const [index, name] of images.entries())
      expect(bytesOf(name)?.equals(others[index] ?? Buffer.alloc(0))).to.equal(true);
  });

  for (const [what, text] of [
    ['a data URL', `data:image/png;base64,${BASE64}`],
    ['slashes written as escapes', BASE64.replaceAll('/', '\\/')],
    ['signs written by their numbers', BASE64.replaceAll('+', '\\u002B').replaceAll('=', '\\u003d')],
    ['lines of 76 characters', BASE64.replaceAll(/.{76}/g, '$&\\r\\n')],
    ['no padding', BASE64.replace(/=+$/, '')],
  ] as const) {
    it(`takes ${what}`, () => {
      const { bytes, isLong } = field(`{"image": "${text}"}`);
      expect(isLong).to.equal(true);
      expect(bytes?.equals(LARGE)).to.equal(true);
    });
  }

  for (const [what, text] of [
    ['another letter in it', `${BASE64.slice(0, 1000)}!${BASE64.slice(1001)}`],
    ['padding in its middle', `${BASE64.slice(0, 1000)}=${BASE64.slice(1001)}`],
    ['an escaped quote', `${BASE64.slice(0, 1000)}\\"${BASE64.slice(1000)}`],
    ['an escape that is none', `${BASE64.slice(0, 1000)}\\u00zz${BASE64.slice(1000)}`],
    ['a letter beyond ASCII', `${BASE64.slice(0, 1000)}é${BASE64.slice(1000)}`],
    [
      'one character too many',
      BASE64.replace(/=+$/, '').slice(0, -(BASE64.replace(/=+$/, '').length % 4) + 1 || undefined),
    ],
  ] as const) {
    it(`refuses base64 with ${what}`, () => {
      expect(field(`{"image": "${text}"}`).bytes).to.equal(undefined);
    });
  }

  it('takes short base64 as the decoder does, and refuses what is none', () => {
    expect(bytesOfBase64('aGVs\nbG8=')?.toString()).to.equal('hello');
    expect(bytesOfBase64('data:image/png;base64,aGVsbG8')?.toString()).to.equal('hello');
    for (const text of ['', '=', '!', 'a', 'aGVsbG8é', 'aGVs=bG8'])
      expect(bytesOfBase64(text)).to.equal(undefined);
  });

  it('throws a SyntaxError for what is no JSON, and for a sea of quotes', () => {
    for (const text of [
      '',
      '{',
      `"${BASE64}`,
      `{"${BASE64}": "a" "b"}`,
      `{"image": ${BASE64}}`,
      '""'.repeat(200_000),
      '"\\"'.repeat(300_000),
    ]) {
      expect(() => parseBulkyJson(Buffer.from(text)), text.slice(0, 20)).to.throw(SyntaxError);
    }
  });
});
