/** GET /v1/images/license/{token}: what a license is for, without a key and without a word about whose it is. */
import { ServiceError } from '../../../core/errors.ts';
import type { Handler } from '../../context.ts';
import { findLicense, type License } from '../../data/certificates.ts';
import { answerPublicRead } from '../../public-read.ts';
import type { Services } from '../../services.ts';
import { characterView } from './gallery-view.ts';
import { termsView } from './license-terms.ts';

const TOKEN = /^lic_[A-Za-z0-9_-]{32}$/;
const MAX_AGE_SECONDS = 10;

export function getLicense({ pool }: Services): Handler {
  return async (ctx) => {
    const token = String(ctx.params.token);
    const license = TOKEN.test(token) ? await findLicense(pool, token) : undefined;
    if (license === undefined) throw new ServiceError('not_found');
    answerPublicRead(ctx, licenseView(license), MAX_AGE_SECONDS);
  };
}

/** It holds as long as the picture is published or certified. */
function licenseView(license: License): Record<string, unknown> {
  const { deletedAt, withdrawnAt, isPublished, certId, character } = license;
  const holds = deletedAt === null && (isPublished || certId !== null);
  return {
    object: 'image.license',
    status: holds ? 'valid' : 'taken_back',
    image_id: license.imageId,
    model: license.modelId,
    created_at: license.createdAt.toISOString(),
    licensed_at: license.licensedAt.toISOString(),
    taken_back_at: holds ? null : ((deletedAt ?? withdrawnAt)?.toISOString() ?? null),
    character: character === null ? null : characterView(character),
    terms: termsView(license.terms),
    content_type: license.contentType,
    sha256: license.sha256,
    cert_id: certId,
  };
}
