/** What an image job asks of a provider: its input, with the caller's pictures read from the store. */
import { type ImageJobInput, MAX_PICTURE_BYTES } from '../../../core/images.ts';
import type { InputFile, RunAssets } from '../../assets.ts';
import {
  type ImageCall,
  type ImageInput,
  type ImageProvider,
  type Provider,
  ProviderError,
} from '../../providers/provider.ts';
import type { Run } from '../../run.ts';

/** The caller's pictures. */
export type Inputs = Pick<ImageCall, 'images' | 'mask'>;

export async function loadInputs(run: Run, input: ImageJobInput, assets: RunAssets): Promise<Inputs> {
  const images: ImageInput[] = [];
  for (const image of input.images) images.push(await load(run, image, assets));
  return { images, mask: input.mask === null ? undefined : await load(run, input.mask, assets) };
}

async function load(run: Run, input: InputFile, assets: RunAssets): Promise<ImageInput> {
  return { bytes: await assets.readInput(run, input, MAX_PICTURE_BYTES), contentType: input.contentType };
}

export function callOf(
  run: Run,
  input: ImageJobInput,
  upstreamModel: string,
  { images, mask }: Inputs,
): ImageCall {
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
    images,
    mask,
  };
}

export function imageOf(provider: Provider): ImageProvider {
  if (provider.image === undefined) {
    throw new ProviderError('misconfigured', `${provider.name} makes no pictures`);
  }
  return provider.image;
}
