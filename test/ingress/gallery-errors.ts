/** What the gallery, characters and certificates of pictures are refused with; run by errors.test.ts. */
import { GALLERY_PRICE_AP, makePictures, PICTURE_AP } from '../helpers/gallery.ts';
import type { CallerOptions } from '../helpers/service.ts';
import type { Case } from './error-case.ts';

const NOBODY = '01900000-0000-7000-8000-000000000000';

/** A call about a picture of a new caller's own, after something was done to it. */
function picture(
  path: (id: string) => string,
  siblings: object = {},
  options: CallerOptions = {},
  spoil: (
    call: (method: string, path: string) => Promise<unknown>,
    id: string,
  ) => Promise<unknown> = async () => {},
  body?: object,
): Case['given'] {
  return async (service, as) => {
    const { secret } = await service.makeCaller({ ...options, ...as });
    const { id } = await makePictures(service, secret);
    await spoil((method, path) => service.call(method, path, { secret }), id);
    return {
      siblings,
      call: (call) => service.post(path(id), { secret, ...(body === undefined ? {} : { body }), ...call }),
    };
  };
}
const publish = (id: string): string => `/v1/images/${id}/publish`;
const certify = (id: string): string => `/v1/images/${id}/certify`;
const get = (path: string, siblings: object = {}): Pick<Case, 'isStranger' | 'given'> => ({
  isStranger: true,
  given: (service) => ({ siblings, call: (options) => service.get(path, options) }),
});

export const GALLERY_CASES: readonly Case[] = [
  {
    code: 'entry_already_certified',
    when: 'the picture has a certificate',
    given: picture(certify, {}, {}, (call, id) => call('POST', certify(id))),
  },
  {
    code: 'insufficient_ap',
    when: 'publishing is above what is left',
    given: picture(
      publish,
      { required_ap: GALLERY_PRICE_AP, available_ap: GALLERY_PRICE_AP - 1, held_ap: 0 },
      { balanceAp: PICTURE_AP + GALLERY_PRICE_AP - 1 },
    ),
  },
  {
    code: 'request_over_key_cap',
    when: 'publishing is above the cap per request',
    given: picture(
      publish,
      { cap_ap: PICTURE_AP, requested_ap: GALLERY_PRICE_AP },
      { capPerRequestAp: PICTURE_AP },
    ),
  },
  {
    code: 'gone',
    when: 'the picture to be published was deleted',
    given: picture(publish, {}, {}, (call, id) => call('DELETE', `/v1/images/${id}`)),
  },
  {
    code: 'not_found',
    when: 'the picture to be published is nobody’s',
    given: picture(() => publish(NOBODY)),
  },
  {
    code: 'unsupported_parameter',
    when: 'publishing comes with a field',
    given: picture(publish, { param: 'price' }, {}, undefined, { price: 0 }),
  },
  {
    code: 'invalid_parameter',
    when: 'a certificate has a title of another type',
    given: picture(certify, { param: 'title' }, {}, undefined, { title: 7 }),
  },
  {
    code: 'invalid_parameter',
    when: 'the slug of a character is taken',
    given: async (service, as) => {
      const { secret } = await service.makeCaller(as);
      const body = {
        slug: `taken-${Date.now()}-${Math.round(performance.now())}`,
        name: { en: 'x' },
        prompt: 'x',
      };
      await service.post('/v1/images/characters', { secret, body });
      return {
        siblings: { param: 'slug', reason: 'taken' },
        call: (options) => service.post('/v1/images/characters', { secret, body, ...options }),
      };
    },
  },
  {
    code: 'unknown_character',
    when: 'the gallery is asked for nobody’s',
    ...get('/v1/images/gallery?character=nobody', { param: 'character' }),
  },
  { code: 'not_found', when: 'no such picture was published', ...get(`/v1/images/gallery/${NOBODY}`) },
  { code: 'not_found', when: 'the license is unknown', ...get('/v1/images/license/x') },
  { code: 'not_found', when: 'the certificate is unknown', ...get('/v1/images/cert/legacy-1') },
  { code: 'not_found', when: 'the character has no picture', ...get('/v1/images/characters/nobody/image') },
];
