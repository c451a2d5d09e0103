/** GET /v1/images/cert/{id}: verifies a certificate of before this service, `legacy-<number>`, as operators imported it. */
import { ServiceError } from '../../../core/errors.ts';
import type { Handler } from '../../context.ts';
import { findLegacyCertificate } from '../../data/certificates.ts';
import { answerPublicRead } from '../../public-read.ts';
import type { Services } from '../../services.ts';

const LEGACY_ID = /^legacy-([1-9]\d{0,14})$/;
const MAX_AGE_SECONDS = 60;

export function getLegacyCertificate({ pool }: Services): Handler {
  return async (ctx) => {
    const number = LEGACY_ID.exec(String(ctx.params.id))?.[1];
    const found = number === undefined ? undefined : await findLegacyCertificate(pool, Number(number));
    if (found === undefined) throw new ServiceError('not_found');
    answerPublicRead(
      ctx,
      {
        object: 'legacy_certificate',
        id: `legacy-${found.number}`,
        status: found.status,
        valid: found.status === 'issued',
        title: found.title,
        holder_name: found.holderName,
        event: found.event,
        issued_on: found.issuedOn,
        details: found.details,
      },
      MAX_AGE_SECONDS,
    );
  };
}
