/**
 * POST /v1/images/{id}/certify: a certificate of a picture of the caller's own, which becomes the selected one of its generation. Paid
 * once; a picture is certified once (`entry_already_certified`). What becomes of certificates later is not here.
 */
import { v7 as uuidv7 } from 'uuid';
import { type CertificateRecord, recordSha256 } from '../../../core/certificates.ts';
import { ServiceError } from '../../../core/errors.ts';
import { GALLERY_SUBMIT } from '../../../core/operations.ts';
import { callerOf, type Handler } from '../../context.ts';
import { certifyImage } from '../../data/certificates.ts';
import { readOptionalJsonBody } from '../../json-body.ts';
import { operationPrice, runOperation } from '../../operation.ts';
import { idOf } from '../../parameters.ts';
import { publicUrl } from '../../public-url.ts';
import { CertifyRequest } from '../../schemas/gallery.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { type OwnImage, requireOwnImage } from './gallery-view.ts';

const TASK = 'images/certify';
const MAX_BODY_BYTES = 64 * 1024;

const validate = makeValidator(CertifyRequest);

export function postCertify(services: Services): Handler {
  const { config, balancesPool } = services;
  return async (ctx) => {
    const { raw, value } = await readOptionalJsonBody(ctx, MAX_BODY_BYTES);
    const body = validate(value);
    const id = idOf(ctx);
    const candidateId = body.candidate_id?.toLowerCase();
    const image = await requireOwnImage(ctx, services, candidateId ?? id);
    const isOfPath = candidateId === undefined || image.asset.id === id || image.asset.requestId === id;
    if (!isOfPath) throw new ServiceError('invalid_parameter', { param: 'candidate_id' });
    const price = operationPrice(services, GALLERY_SUBMIT);
    const record = recordOf(image, body, callerOf(ctx).accountId, services.now());
    const { cert_id, title, holder_name, issued_on, details } = record;
    const record_sha256 = recordSha256(record);
    const certUrl = { baseUrl: config.certUrl ?? config.baseUrl };
    const result = {
      object: 'certificate',
      cert_id,
      cert_url: publicUrl(ctx, certUrl, `/c/${cert_id}`),
      status: 'issued',
      entry_id: record.entry_id,
      image_id: record.image_id,
      title,
      holder_name,
      issued_on,
      record_sha256,
      ap_cost: price.ap,
    };
    await runOperation(
      ctx,
      services,
      { task: TASK, modelId: GALLERY_SUBMIT, price, rawBody: raw },
      (charge) =>
        certifyImage(
          balancesPool,
          charge,
          image.licensed,
          { cert_id, title, holder_name, issued_on, details, record_sha256 },
          result,
        ),
    );
  };
}

function recordOf(
  { asset, licensed }: OwnImage,
  body: CertifyRequest,
  accountId: string,
  at: Date,
): CertificateRecord {
  return {
    cert_id: uuidv7(),
    entry_id: asset.id,
    source: 'create',
    title: body.title ?? null,
    holder_name: body.holder_name ?? null,
    event: null,
    issued_on: at.toISOString().slice(0, 10),
    details: { model: licensed.model_id, image_sha256: asset.sha256 },
    image_id: licensed.image_id,
    issuer: accountId,
  };
}
