/** The pictures of an answer: base64 checked, addresses fetched, and no more than were asked for. */
import { bytesOfBase64 } from '../../../core/bulky-json.ts';
import { fetchBytes } from '../fetch-bytes.ts';
import { type AnswerRoom, type ProducedImage, ProviderError } from '../provider.ts';
import { eventError, isObject } from './errors.ts';

/** Of the pictures of one answer together, decoded. */
export const MAX_PICTURES_BYTES = 64 * 1024 * 1024;
/** The longest prompt of the convention. */
const MAX_REVISED_PROMPT_CHARACTERS = 32_000;

export interface ImageSource {
  readonly baseUrl: URL;
  readonly signal: AbortSignal;
  readonly room?: AnswerRoom | undefined;
  /** Of a string of the answer that is base64. */
  readonly bytesOf: typeof bytesOfBase64;
}

/** Throws unless the answer has a picture, and at most so many. */
export async function picturesOf(
  answer: Readonly<Record<string, unknown>>,
  count: number,
  source: ImageSource,
): Promise<ProducedImage[]> {
  if (isObject(answer.error)) throw eventError(answer.error);
  const { data } = answer;
  if (!Array.isArray(data)) throw new ProviderError('invalid_response', 'The answer has no pictures.');
  if (data.length === 0 || data.length > count)
    throw new ProviderError(
      'invalid_response',
      `The answer has ${data.length} pictures instead of ${count}.`,
    );
  const images: ProducedImage[] = [];
  let bytesLeft = MAX_PICTURES_BYTES;
  for (const item of data as unknown[]) {
    if (!isObject(item)) throw new ProviderError('invalid_response', 'A picture is no object.');
    const bytes =
      typeof item.url === 'string' && !isGiven(item.b64_json)
        ? await fetchPicture(item.url, bytesLeft, source)
        : decodePicture(item.b64_json, source.bytesOf);
    bytesLeft -= bytes.length;
    if (bytesLeft < 0)
      throw new ProviderError('invalid_response', `The pictures are over ${MAX_PICTURES_BYTES} bytes.`, {
        isOurLimit: true,
      });
    images.push({ bytes, revisedPrompt: revisedPromptOf(item) });
  }
  return images;
}

/** Some servers send what a browser can show: a data URL. */
export function decodePicture(value: unknown, bytesOf = bytesOfBase64): Buffer {
  if (typeof value !== 'string' || value === '')
    throw new ProviderError('invalid_response', 'A picture has no bytes.');
  const bytes = bytesOf(value);
  if (bytes === undefined) throw new ProviderError('invalid_response', 'A picture is not base64.');
  return bytes;
}

export function revisedPromptOf(item: Readonly<Record<string, unknown>>): string | undefined {
  const prompt = item.revised_prompt;
  if (typeof prompt !== 'string' || prompt === '') return undefined;
  return prompt.slice(0, MAX_REVISED_PROMPT_CHARACTERS).toWellFormed();
}

async function fetchPicture(address: string, maxBytes: number, source: ImageSource): Promise<Buffer> {
  if (address.startsWith('data:')) return decodePicture(address);
  return fetchBytes(address, { ...source, maxBytes });
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}
