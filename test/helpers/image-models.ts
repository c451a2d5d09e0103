/** Image models for tests: of the sandbox, priced by size and quality. */
import { expect } from 'chai';
import type { Pool } from '../../core/database.ts';
import { eventually, type TestService } from './service.ts';

export const IMAGE_MODEL = 'image-test';
/** Small sizes: a test is about what happens to a picture, not about its pixels. */
export const IMAGE_PRICES = [
  { size: '64x64', quality: 'low', ap: 10 },
  { size: '64x64', quality: 'medium', ap: 40 },
  { size: '96x64', quality: 'low', ap: 15 },
] as const;

export interface TestImageModel {
  readonly id: string;
  readonly provider: string;
  readonly recommended?: boolean;
  readonly prices?: readonly { readonly size: string; readonly quality: string; readonly ap: number }[];
}

/** Resolves once the ingress offers it. The provider `sandbox` is made when missing. */
export async function makeImageModel(
  service: Pick<TestService, 'pool' | 'get'>,
  model: TestImageModel,
): Promise<void> {
  await insertImageModel(service.pool, model);
  await eventually(async () => {
    const { json } = await service.get('/v1/images/models');
    const listed = json.data.find((entry: { id: string }) => entry.id === model.id);
    expect(listed?.pricing).to.have.length((model.prices ?? IMAGE_PRICES).length);
  });
}

/** For a service that is not started yet. */
export async function insertImageModel(pool: Pool, model: TestImageModel): Promise<void> {
  await pool.query(
    `insert into app.providers (name, kind) values ('sandbox', 'sandbox') on conflict (name) do nothing`,
  );
  await pool.query(`insert into app.models (id, type, recommended) values ($1, 'image', $2)`, [
    model.id,
    model.recommended ?? false,
  ]);
  await pool.query(`insert into app.routes (model_id, provider, upstream_model) values ($1, $2, $1)`, [
    model.id,
    model.provider,
  ]);
  for (const { size, quality, ap } of model.prices ?? IMAGE_PRICES) {
    await pool.query(`select app.publish_price($1, 'per_image', null, null, $2, $3, $4, null, 'test')`, [
      model.id,
      ap,
      size,
      quality,
    ]);
  }
}
