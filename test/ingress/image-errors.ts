/** What images are refused with over HTTP; run, and checked to be complete, by errors.test.ts. */
import { BOUNDARY, FORM_HEADERS, form } from '../helpers/form.ts';
import { IMAGE_MODEL, IMAGE_PRICES } from '../helpers/image-models.ts';
import { makePng, makeZip } from '../helpers/pictures.ts';
import { MODEL } from '../helpers/service.ts';
import type { Case } from './error-case.ts';

const IMAGES = '/v1/images/generations';
const EDITS = '/v1/images/edits';
const imageBody = (changes: object = {}) => ({ model: IMAGE_MODEL, prompt: 'a lighthouse', ...changes });

/** An image call by a new caller. */
function image(
  body: unknown,
  siblings: object = {},
  path = IMAGES,
  headers: Record<string, string> = {},
): Case['given'] {
  return async (service, as) => {
    const { secret } = await service.makeCaller(as);
    return {
      siblings,
      call: (options) =>
        service.post(path, { secret, body, ...options, headers: { ...headers, ...options.headers } }),
    };
  };
}

const picture = (bytes = makePng(8, 8)): string => bytes.toString('base64');
const SIZES = [...new Set(IMAGE_PRICES.map(({ size }) => size))];

export const IMAGE_CASES: readonly Case[] = [
  {
    code: 'prompt_required',
    when: 'there is none',
    given: image({ model: IMAGE_MODEL }, { param: 'prompt' }),
  },
  {
    code: 'prompt_required',
    when: 'it is blank',
    given: image(imageBody({ prompt: ' ' }), { param: 'prompt' }),
  },
  {
    code: 'size_not_priced',
    when: 'the price table has no such size',
    given: image(imageBody({ size: '123x456' }), { param: 'size', allowed: SIZES }),
  },
  {
    code: 'quality_not_priced',
    when: 'the size has no such quality',
    given: image(imageBody({ size: '96x64', quality: 'medium' }), { param: 'quality', allowed: ['low'] }),
  },
  {
    code: 'unknown_character',
    when: 'there is no such character',
    given: image(imageBody({ character: 'nobody' }), { param: 'character' }),
  },
  {
    code: 'unsupported_format',
    when: 'pictures of that format are not made',
    given: image(imageBody({ output_format: 'gif' }), {
      param: 'output_format',
      allowed: ['png', 'jpeg', 'webp'],
    }),
  },
  {
    code: 'unsupported_format',
    when: 'a picture is of a format that is not read',
    given: image(
      imageBody({ reference_image: Buffer.from('GIF89a and so on').toString('base64') }),
      { param: 'reference_image', reason: 'unsupported_format' },
      EDITS,
    ),
  },
  {
    code: 'unsupported_parameter',
    when: 'a picture comes with a generation',
    given: image(imageBody({ reference_image: picture() }), { param: 'reference_image' }),
  },
  {
    code: 'unsupported_parameter',
    when: 'a form has a file of another name',
    given: image(form({}, { photo: makePng(8, 8) }), { param: 'photo' }, EDITS, FORM_HEADERS),
  },
  ...(
    [
      ['more pictures are asked for than are made at once', { n: 5 }, 'n'],
      ['a prompt is too long', { prompt: 'x'.repeat(32_001) }, 'prompt'],
      ['a PNG is to be compressed', { output_compression: 50 }, 'output_compression'],
      ['a JPEG is to be transparent', { output_format: 'jpeg', background: 'transparent' }, 'background'],
      ['partial pictures are asked for without a stream', { partial_images: 1 }, 'partial_images'],
    ] as const
  ).map(
    ([when, changes, param]): Case => ({
      code: 'invalid_parameter',
      when,
      given: image(imageBody(changes), { param }),
    }),
  ),
  {
    code: 'invalid_parameter',
    when: 'an edit has no picture',
    given: image(imageBody(), { param: 'image' }, EDITS),
  },
  {
    code: 'invalid_parameter',
    when: 'a picture is cut short',
    given: image(
      imageBody({ image: [picture(), picture(makePng(64, 64).subarray(0, 90))] }),
      { param: 'image[1]', reason: 'damaged' },
      EDITS,
    ),
  },
  {
    code: 'invalid_parameter',
    when: 'a picture is another file as well',
    given: image(
      form({ prompt: 'x' }, { image: Buffer.concat([makePng(8, 8), makeZip()]) }),
      { param: 'image', reason: 'polyglot' },
      EDITS,
      FORM_HEADERS,
    ),
  },
  {
    code: 'invalid_parameter',
    when: 'a picture is no base64',
    given: image(imageBody({ image: 'not base64!' }), { param: 'image' }, EDITS),
  },
  {
    code: 'invalid_parameter',
    when: 'the mask is of another size than the picture',
    given: image(
      imageBody({ image: picture(), mask: picture(makePng(9, 8)) }),
      { param: 'mask', reason: 'another_size' },
      EDITS,
    ),
  },
  {
    code: 'invalid_json',
    when: 'a form breaks off',
    given: image(`--${BOUNDARY}\r\ncontent-disposition: form-data; name="prompt"`, {}, EDITS, FORM_HEADERS),
  },
  {
    code: 'model_not_found',
    when: 'a picture is asked of a chat model',
    given: image(imageBody({ model: MODEL }), { param: 'model' }),
  },
  {
    code: 'gone',
    when: 'the picture was deleted',
    given: async (service, as) => {
      const { secret } = await service.makeCaller(as);
      const { json } = await service.post(IMAGES, { secret, body: imageBody() });
      await service.call('DELETE', `/v1/images/${json.id}`, { secret });
      return { call: (options) => service.get(`/v1/images/file/${json.id}`, { secret, ...options }) };
    },
  },
  {
    code: 'expired',
    when: 'the picture is past its retention',
    given: async (service, as) => {
      const { secret } = await service.makeCaller(as);
      const { json } = await service.post(IMAGES, { secret, body: imageBody() });
      await service.pool.query('update app.assets set expires_at = now() where request_id = $1', [json.id]);
      return { call: (options) => service.get(`/v1/images/${json.id}`, { secret, ...options }) };
    },
  },
  {
    code: 'not_found',
    when: 'no such picture is the caller’s',
    given: async (service, as) => {
      const { secret } = await service.makeCaller(as);
      const path = '/v1/images/file/01900000-0000-7000-8000-000000000000';
      return { call: (options) => service.get(path, { secret, ...options }) };
    },
  },
  {
    code: 'not_found',
    when: 'images are asked for by a word that is no id',
    isStranger: true,
    given: (service) => ({ call: (options) => service.get('/v1/images/nothing', options) }),
  },
  {
    code: 'not_found',
    when: 'generations are only posted',
    isStranger: true,
    status: 405,
    given: (service) => ({ call: (options) => service.get(IMAGES, options) }),
  },
];
