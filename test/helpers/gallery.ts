/** What tests of the gallery begin with: its price, and pictures of the sandbox. */
import { expect } from 'chai';
import { GALLERY_SUBMIT } from '../../core/operations.ts';
import { IMAGE_MODEL } from './image-models.ts';
import { eventually, type TestService } from './service.ts';

export const GALLERY_PRICE_AP = 70;
/** What one picture costs. */
export const PICTURE_AP = 10;

/** Resolves once the ingress offers publishing. */
export async function makeGalleryPrice(
  service: Pick<TestService, 'pool' | 'get'>,
  ap = GALLERY_PRICE_AP,
): Promise<void> {
  await service.pool.query(`insert into app.models (id, type) values ($1, 'gateway')`, [GALLERY_SUBMIT]);
  await service.pool.query(
    `select app.publish_price($1, 'per_call', null, null, $2, null, null, null, 'test')`,
    [GALLERY_SUBMIT, ap],
  );
  await eventually(async () =>
    expect((await service.get(`/v1/models/${GALLERY_SUBMIT}`)).status).to.equal(200),
  );
}

export interface MadePictures {
  /** The generation's. */
  readonly id: string;
  readonly candidates: readonly string[];
}

let serial = 0;

/** Of a prompt that nobody used before, so that no cache answers. */
export async function makePictures(
  service: Pick<TestService, 'post'>,
  secret: string,
  changes: object = {},
): Promise<MadePictures> {
  serial += 1;
  const { status, json } = await service.post('/v1/images/generations', {
    secret,
    body: {
      model: IMAGE_MODEL,
      prompt: `picture ${serial}`,
      size: '64x64',
      quality: 'low',
      response_format: 'url',
      ...changes,
    },
  });
  expect(status, JSON.stringify(json)).to.equal(200);
  return { id: json.id, candidates: json.data.map((one: { candidate_id: string }) => one.candidate_id) };
}
