/**
 * Image results in the wire's shapes: the convention's answer and its stream events, with this service's own fields beside them.
 * Pictures stand in the store; here they are only named.
 */

import type { AssetKind } from '../../../core/assets/keys.ts';
import type { Config } from '../../../core/config.ts';
import type { ImageDetails, ImageOfResult, ImageResult, ImageStreamEvent } from '../../../core/images.ts';
import { endOf } from '../../assets.ts';
import type { EmbeddedFile } from '../../base64-json.ts';
import type { Context } from '../../context.ts';
import type { Asset } from '../../data/assets.ts';
import type { Generation } from '../../data/images.ts';
import { publicUrl } from '../../public-url.ts';

type Wire = Record<string, unknown>;

/** A result that may have lost some of its pictures since. */
export type ShownResult = Omit<ImageResult, 'images'> & {
  readonly images: readonly (ImageOfResult & { readonly end?: ReturnType<typeof endOf> })[];
};
export type Embed = (file: EmbeddedFile) => string;

export interface ViewOptions {
  readonly isCached?: boolean;
  /** Said where the answer is collected. */
  readonly status?: string;
  /** Where pictures are put; none: addresses alone. */
  readonly embed?: Embed | undefined;
}

/** The answer of POST /v1/images/generations and /edits. */
export function resultView(
  ctx: Context,
  config: Config,
  result: ShownResult,
  options: ViewOptions = {},
): Wire {
  const isCached = options.isCached ?? false;
  return {
    id: result.id,
    ...(options.status === undefined ? {} : { status: options.status }),
    created: result.created,
    model: result.model,
    data: result.images.map((image) =>
      image.end !== undefined
        ? { candidate_id: image.asset, status: image.end }
        : {
            ...(options.embed === undefined ? {} : { b64_json: options.embed(fileOf(image, 'image')) }),
            url: pictureUrl(ctx, config, result.images.length === 1 ? result.id : image.asset),
            candidate_id: image.asset,
            ...(image.revisedPrompt === null ? {} : { revised_prompt: image.revisedPrompt }),
          },
    ),
    ...lookOf(result),
    ...(result.usage === null ? {} : { usage: result.usage }),
    cached: isCached,
    ap_cost: isCached ? 0 : result.costAp,
  };
}

/** One event of a stream. */
export function eventView(
  ctx: Context,
  config: Config,
  id: string,
  event: ImageStreamEvent,
  count: number,
  { isCached = false, embed }: ViewOptions,
): Wire {
  const { image } = event;
  const isPartial = event.kind === 'partial';
  return {
    type: eventType(event),
    ...(embed === undefined ? {} : { b64_json: embed(fileOf(image, isPartial ? 'partial' : 'image')) }),
    created_at: event.created,
    ...lookOf(event),
    ...(count > 1 ? { index: event.index } : {}),
    ...(isPartial
      ? { partial_image_index: event.partialIndex }
      : {
          id,
          candidate_id: image.asset,
          url: pictureUrl(ctx, config, count === 1 ? id : image.asset),
          ...(image.revisedPrompt === null ? {} : { revised_prompt: image.revisedPrompt }),
          ...(event.usage == null ? {} : { usage: event.usage }),
          cached: isCached,
          ap_cost: isCached ? 0 : event.costAp,
        }),
  };
}

/** A generation as it is listed: everything but the pictures. Of those that have ended it says only that. */
export function generationView(ctx: Context, config: Config, generation: Generation): Wire {
  const { id, modelId, state, costAp, createdAt, images } = generation;
  const first = images.find((image) => endOf(image) === undefined);
  return {
    id,
    object: 'image.generation',
    status: state,
    model: modelId,
    created: Math.floor(createdAt.getTime() / 1000),
    ap_cost: costAp,
    ...(first === undefined
      ? {}
      : {
          expires_at: first.expiresAt?.toISOString() ?? null,
          ...(detailsOf(first).quality === null ? {} : { quality: detailsOf(first).quality }),
        }),
    data: images.map((image) =>
      endOf(image) !== undefined
        ? { candidate_id: image.id, status: endOf(image) }
        : {
            candidate_id: image.id,
            url: pictureUrl(ctx, config, images.length === 1 ? id : image.id),
            preview_url: publicUrl(ctx, config, `/v1/images/candidate/${image.id}`),
            content_type: image.contentType,
            width: detailsOf(image).width,
            height: detailsOf(image).height,
            bytes: image.bytes,
            sha256: image.sha256,
          },
    ),
    status_url: publicUrl(ctx, config, statusPath(id)),
  };
}

/** What the task noted of a picture. */
export function detailsOf({ details }: Pick<Asset, 'details'>): ImageDetails {
  return details as unknown as ImageDetails;
}

/** The convention's name of an event, also its name among server-sent events. */
export function eventType({ kind, operation }: Pick<ImageStreamEvent, 'kind' | 'operation'>): string {
  return `image_${operation}.${kind === 'partial' ? 'partial_image' : 'completed'}`;
}

export function pictureUrl(ctx: Context, config: Config, id: string): string {
  return publicUrl(ctx, config, `/v1/images/file/${id}`);
}

/** The path that collects a generation later. */
export function statusPath(id: string): string {
  return `/v1/images/status/${id}`;
}

function lookOf(made: Pick<ImageResult, 'background' | 'outputFormat' | 'quality' | 'size'>): Wire {
  return {
    ...(made.background === null ? {} : { background: made.background }),
    output_format: made.outputFormat,
    ...(made.quality === null ? {} : { quality: made.quality }),
    size: made.size,
  };
}

function fileOf(image: ImageOfResult, kind: AssetKind): EmbeddedFile {
  return { id: image.asset, kind, contentType: image.contentType, bytes: image.bytes };
}
