/** What an image job asks of a provider: its input, with the caller's pictures to be read from the store when they are sent. */
import type { ImageJobInput, StoredInput } from '../../../core/images.ts';
import type { RunAssets } from '../../assets.ts';
import {
  type AnswerRoom,
  type ImageCall,
  type ImageInput,
  type ImageProvider,
  type Provider,
  ProviderError,
} from '../../providers/provider.ts';
import type { Run } from '../../run.ts';

/** `room`: for the pictures of the answer. */
export function callOf(
  run: Run,
  input: ImageJobInput,
  upstreamModel: string,
  assets: Pick<RunAssets, 'openInput'>,
  room: AnswerRoom,
): ImageCall {
  const picture = ({ byteLength, ...file }: StoredInput): ImageInput => ({
    contentType: file.contentType,
    byteLength,
    open: () => assets.openInput(run, file),
  });
  return {
    requestId: run.id,
    upstreamModel,
    signal: run.signal,
    prompt: input.prompt,
    count: input.count,
    size: input.size,
    quality: input.quality ?? undefined,
    background: input.background ?? undefined,
    outputFormat: input.outputFormat,
    outputCompression: input.outputCompression ?? undefined,
    moderation: input.moderation ?? undefined,
    user: input.user ?? undefined,
    seed: input.seed ?? undefined,
    inputFidelity: input.inputFidelity ?? undefined,
    partialImages: input.partialImages,
    images: input.images.map(picture),
    mask: input.mask === null ? undefined : picture(input.mask),
    room,
  };
}

export function imageOf(provider: Provider): ImageProvider {
  if (provider.image === undefined) {
    throw new ProviderError('misconfigured', `${provider.name} makes no pictures`);
  }
  return provider.image;
}
