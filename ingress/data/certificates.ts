/** Certificates of pictures, licenses, and what is verified of both without a key. */
import type { CertificateRecord } from '../../core/certificates.ts';
import type { Pool } from '../../core/database.ts';
import type { Charge } from '../operation.ts';
import type { CharacterName } from './characters.ts';
import { type LicensedImage, OUTCOME_COLUMNS } from './gallery.ts';
import type { SubmissionRow } from './submissions.ts';

export async function certifyImage(
  pool: Pool,
  { submission, initialGrantAp }: Charge,
  image: LicensedImage,
  certificate: Pick<CertificateRecord, 'cert_id' | 'title' | 'holder_name' | 'issued_on' | 'details'> & {
    readonly record_sha256: string;
  },
  result: object,
): Promise<SubmissionRow> {
  const { rows } = await pool.query<SubmissionRow>({
    name: 'certify_image',
    text: `select ${OUTCOME_COLUMNS} from app.certify_image($1, $2, $3, $4, $5)`,
    values: [
      submission,
      JSON.stringify(image),
      JSON.stringify(certificate),
      JSON.stringify(result),
      initialGrantAp,
    ],
  });
  return rows[0] as SubmissionRow;
}

export interface License {
  readonly imageId: string;
  readonly modelId: string;
  readonly terms: string;
  readonly licensedAt: Date;
  readonly createdAt: Date;
  readonly contentType: string;
  /** Hexadecimal. */
  readonly sha256: string;
  /** Only one that is public. */
  readonly character: CharacterName | null;
  readonly isPublished: boolean;
  readonly withdrawnAt: Date | null;
  readonly deletedAt: Date | null;
  /** Of one that is not revoked. */
  readonly certId: string | null;
}

const FIND_LICENSE = {
  name: 'find_license',
  text: `select l.image_id as "imageId", l.model_id as "modelId", l.terms, l.created_at as "licensedAt",
      a.created_at as "createdAt", a.content_type as "contentType", encode(a.sha256, 'hex') as sha256,
      case when c.id is not null
        then json_build_object('id', c.id, 'slug', c.slug, 'nameJa', c.name_ja, 'nameEn', c.name_en) end as character,
      g.asset_id is not null and g.withdrawn_at is null as "isPublished", g.withdrawn_at as "withdrawnAt",
      a.deleted_at as "deletedAt", t.cert_id as "certId"
    from app.licenses l
    join app.assets a on a.id = l.asset_id
    left join app.gallery_items g on g.asset_id = l.asset_id
    left join app.certs t on t.asset_id = l.asset_id and t.status <> 'revoked'
    left join app.characters c on c.id = l.character_id and c.is_public and c.removed_at is null
    where l.token = $1`,
};

export async function findLicense(pool: Pool, token: string): Promise<License | undefined> {
  const { rows } = await pool.query<License>({ ...FIND_LICENSE, values: [token] });
  return rows[0];
}

export interface LegacyCertificate {
  readonly number: number;
  readonly status: string;
  readonly title: string | null;
  readonly holderName: string | null;
  readonly event: string | null;
  /** `yyyy-mm-dd` */
  readonly issuedOn: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

const FIND_LEGACY = {
  name: 'find_legacy_certificate',
  text: `select number, status, title, holder_name as "holderName", event, to_char(issued_on, 'YYYY-MM-DD') as "issuedOn", details
    from app.legacy_certs where number = $1`,
};

export async function findLegacyCertificate(
  pool: Pool,
  number: number,
): Promise<LegacyCertificate | undefined> {
  const { rows } = await pool.query<LegacyCertificate>({ ...FIND_LEGACY, values: [number] });
  return rows[0];
}
