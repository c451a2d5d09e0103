/**
 * A character in a request for pictures: its prompt goes before the caller's, its picture behind the caller's pictures. Who may use it
 * is decided here (check 5); what it earns its payee is not.
 */
import { ServiceError } from '../../../core/errors.ts';
import { type Context, callerOf } from '../../context.ts';
import { findUsableCharacter } from '../../data/characters.ts';
import { MAX_PICTURES, MAX_PROMPT_CHARACTERS } from '../../schemas/images.ts';
import type { Services } from '../../services.ts';
import type { ImageBody } from './read.ts';

interface CharacterPicture {
  /** The asset's. */
  readonly id: string;
  readonly contentType: string;
  readonly byteLength: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** A body whose character has been found; its prompt is already in the body's. */
export type CastBody = Omit<ImageBody, 'character'> & {
  readonly character: { readonly id: string; readonly picture: CharacterPicture | undefined } | undefined;
};

/** Throws `unknown_character` for one that does not exist, or is another's and not public. */
export async function withCharacter(
  ctx: Context,
  { pool }: Pick<Services, 'pool'>,
  body: ImageBody,
): Promise<CastBody> {
  if (body.character === undefined) return { ...body, character: undefined };
  // text that PostgreSQL cannot hold names nothing either
  const found = body.character.includes('\u0000')
    ? undefined
    : await findUsableCharacter(pool, body.character, callerOf(ctx).accountId);
  if (found === undefined) throw new ServiceError('unknown_character', { param: 'character' });
  const prompt = `${found.prompt}\n\n${body.prompt}`;
  if ([...prompt].length > MAX_PROMPT_CHARACTERS) {
    throw new ServiceError('invalid_parameter', {
      param: 'prompt',
      maximum: MAX_PROMPT_CHARACTERS - [...found.prompt].length - 2,
    });
  }
  const { id, pictureId, pictureType, pictureBytes, pictureSha256 } = found;
  const picture =
    pictureId === null || pictureType === null || pictureBytes === null || pictureSha256 === null
      ? undefined
      : { id: pictureId, contentType: pictureType, byteLength: pictureBytes, sha256: pictureSha256 };
  if (picture !== undefined && body.pictures.length >= MAX_PICTURES) {
    throw new ServiceError('invalid_parameter', { param: 'image', maximum: MAX_PICTURES - 1 });
  }
  return { ...body, prompt, character: { id, picture } };
}
