/**
 * From what a provider sent to what callers get: looked into, of the size that was paid for, in the format that was asked for, and
 * signed. A picture that does not hold up is the provider's fault.
 */
import type { OutputFormat } from '../../../core/images.ts';
import { contentTypeOf } from '../../../core/images.ts';
import { readPictureFile } from '../../../core/picture-file.ts';
import { encodePicture, inspectPicture, PictureError } from '../../../core/pictures.ts';
import type { PictureSigner } from '../../../core/provenance/signer.ts';
import { ProviderError } from '../../providers/provider.ts';

export interface Finished {
  readonly bytes: Buffer;
  readonly contentType: string;
  readonly width: number;
  readonly height: number;
}

export interface Wanted {
  /** `<width>x<height>`; none: as it is (a partial picture). */
  readonly size: string | undefined;
  readonly format: OutputFormat;
  readonly compression: number | null;
}

/** What the manifest says of it. */
export interface Origin {
  readonly requestId: string;
  readonly model: string;
  readonly createdAt: Date;
}

/** Throws `ProviderError` for what is no picture, or another one than was asked for. */
export async function finishPicture(
  sent: Buffer,
  wanted: Wanted,
  origin: Origin,
  signer: PictureSigner,
): Promise<Finished> {
  const { bytes, width, height } = await inFormat(sent, wanted);
  if (wanted.size !== undefined && wanted.size !== `${width}x${height}`) {
    throw new ProviderError('invalid_response', `a picture of ${width}x${height} instead of ${wanted.size}`);
  }
  return {
    bytes: await signed(bytes, wanted.format, origin, signer),
    contentType: contentTypeOf(wanted.format),
    width,
    height,
  };
}

/** There is no manifest for WebP. */
async function signed(
  bytes: Buffer,
  format: OutputFormat,
  origin: Origin,
  signer: PictureSigner,
): Promise<Buffer> {
  if (format === 'webp') return bytes;
  return signer.sign(bytes, { contentType: format === 'png' ? 'image/png' : 'image/jpeg', ...origin });
}

/** Decoded once, whether that is to look into it or to encode it anew. */
async function inFormat(
  sent: Buffer,
  { format, compression }: Wanted,
): Promise<{ bytes: Buffer; width: number; height: number }> {
  const file = readPictureFile(sent);
  try {
    if (typeof file === 'string' || file.format === format)
      return { bytes: sent, ...(await inspectPicture(sent)) };
    return await encodePicture(sent, { format, ...(compression === null ? {} : { compression }) });
  } catch (error) {
    if (!(error instanceof PictureError)) throw error;
    throw new ProviderError('invalid_response', `what was sent is no picture: ${error.problem}`, {
      cause: error,
    });
  }
}
