/** Forms written while they are sent. */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeFormBody } from '../../../workers/providers/form-body.ts';
import { failureOf } from './conformance.ts';

function fileOf(parts: readonly string[], byteLength: number) {
  const open = () => Promise.resolve(Readable.from(parts.map((part) => Buffer.from(part))));
  return { fileName: 'a.png', contentType: 'image/png', byteLength, open };
}

describe('a form', () => {
  it('is what any reader of forms understands, of the length it says, and can be sent again', async () => {
    const form = makeFormBody([
      { name: 'prompt', content: 'Zwei\nZeilen – é' },
      { name: 'image', content: fileOf(['one', 'two'], 6) },
      { name: 'n', content: '' },
    ]);
    const headers = new Map(
      form.headers.flatMap((name, index, all) => (index % 2 === 0 ? [[name, all[index + 1] ?? '']] : [])),
    );
    for (let time = 0; time < 2; time += 1) {
      const bytes = await buffer(form.open());
      expect(headers.get('content-length')).to.equal(String(bytes.length));
      const read = await new Response(new Uint8Array(bytes), {
        headers: { 'content-type': headers.get('content-type') ?? '' },
      }).formData();
      expect(read.get('prompt')).to.equal('Zwei\nZeilen – é');
      expect(read.get('n')).to.equal('');
      const file = read.get('image') as File;
      expect([file.name, file.type, await file.text()]).to.deep.equal(['a.png', 'image/png', 'onetwo']);
    }
  });

  it('fails when a file is not of the length that was said, or cannot be opened', async () => {
    const short = makeFormBody([{ name: 'image', content: fileOf(['one'], 4) }]);
    expect(String(await failureOf(buffer(short.open())))).to.include('3 bytes instead of 4');
    const failing = { ...fileOf([], 0), open: () => Promise.reject(new Error('no such file')) };
    const missing = makeFormBody([{ name: 'image', content: failing }]);
    expect(String(await failureOf(buffer(missing.open())))).to.include('no such file');
  });
});
