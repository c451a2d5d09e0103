/**
 * What the image routes and the image task say to each other: a job's input, the stored result, and a stream's events. None of
 * them holds a picture: pictures are assets (core/assets), named here by their ids.
 */

/** The task's queue name and path. Generations and edits are one task. */
export const IMAGE_TASK = 'images/generate';

export const OUTPUT_FORMATS = ['png', 'jpeg', 'webp'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** Of a size `<width>x<height>`. */
export function pixelsOf(size: string): number {
  const [width = 0, height = 0] = size.split('x').map(Number);
  return width * height || 0;
}

/** Of one picture, here and at providers: a 64-megapixel PNG may be that large. */
export const MAX_PICTURE_BYTES = 64 * 1024 * 1024;

/** A picture the caller brought, an asset of kind `input`, kept until the request has ended; or a character's. */
export interface StoredInput {
  readonly id: string;
  readonly contentType: string;
  readonly byteLength: number;
  /** `input` where it says nothing. */
  readonly kind?: 'character';
}

/** What the image routes hand to the task. */
export interface ImageJobInput {
  readonly operation: 'generation' | 'edit';
  /** Made with a `svc_test_` key: always the sandbox. */
  readonly isTest: boolean;
  /** Of one picture, at reservation. */
  readonly priceAp: number;
  readonly prompt: string;
  readonly count: number;
  readonly size: string;
  readonly quality: string | null;
  readonly background: string | null;
  readonly outputFormat: OutputFormat;
  readonly outputCompression: number | null;
  readonly moderation: string | null;
  readonly user: string | null;
  readonly seed: number | null;
  readonly inputFidelity: string | null;
  readonly partialImages: number;
  readonly images: readonly StoredInput[];
  readonly mask: StoredInput | null;
  /** Whose prompt and picture are among the above: noted with the pictures and the usage, by which its payee's share is told. */
  readonly characterId: string | null;
  /** Hexadecimal; null: the result is not to be found again by its parameters. */
  readonly cacheKey: string | null;
}

/** What a picture's row says of it (app.assets.details): enough to give the answer again when its JSON is gone. */
export interface ImageDetails {
  readonly width: number;
  readonly height: number;
  readonly quality: string | null;
  readonly background: string | null;
  readonly revisedPrompt: string | null;
  /** The character in it. */
  readonly characterId?: string;
}

/** One finished picture. */
export interface ImageOfResult {
  /** The asset's id. */
  readonly asset: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly revisedPrompt: string | null;
}

/** A request's answer as it is stored (app.request_results); the ingress turns it into the wire's shape. */
export interface ImageResult {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
  readonly size: string;
  readonly quality: string | null;
  readonly background: string | null;
  readonly outputFormat: OutputFormat;
  readonly images: readonly ImageOfResult[];
  /** The provider's usage object as it came. */
  readonly usage: Readonly<Record<string, unknown>> | null;
  readonly costAp: number;
}

/** A stream's event as it is sent and stored; a picture is finished when its event has a cost. */
export interface ImageStreamEvent {
  readonly kind: 'partial' | 'completed';
  readonly operation: 'generation' | 'edit';
  /** Of the picture, 0-based. */
  readonly index: number;
  readonly image: ImageOfResult;
  /** Partial pictures only. */
  readonly partialIndex?: number;
  readonly created: number;
  readonly size: string;
  readonly quality: string | null;
  readonly background: string | null;
  readonly outputFormat: OutputFormat;
  /** Finished pictures only: of this one. */
  readonly costAp?: number;
  readonly usage?: Readonly<Record<string, unknown>> | null;
}

/** A streamed request's events as the answer they make up. */
export function resultOfEvents(
  request: { readonly id: string; readonly model: string },
  events: readonly ImageStreamEvent[],
): ImageResult | undefined {
  const completed = events.filter((event) => event.kind === 'completed');
  const first = completed[0];
  if (first === undefined) return undefined;
  return {
    ...request,
    created: first.created,
    size: first.size,
    quality: first.quality,
    background: first.background,
    outputFormat: first.outputFormat,
    images: completed.map((event) => event.image),
    usage: sumOfCounts(completed.map((event) => event.usage ?? null)),
    costAp: completed.reduce((sum, event) => sum + (event.costAp ?? 0), 0),
  };
}

type Counts = Readonly<Record<string, unknown>>;

/** Usage of several pictures: the same counts added up. Null where there is none. */
export function sumOfCounts(usages: readonly (Counts | null)[]): Counts | null {
  const counted = usages.filter((usage) => usage !== null);
  return counted.length === 0 ? null : counted.reduce(added);
}

function added(one: Counts, other: Counts): Counts {
  const sum: Record<string, unknown> = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = sum[name];
    if (typeof before === 'number' && typeof value === 'number') sum[name] = before + value;
    else if (isCounts(before) && isCounts(value)) sum[name] = added(before, value);
    else sum[name] = value;
  }
  return sum;
}

function isCounts(value: unknown): value is Counts {
  return typeof value === 'object' && value !== null;
}

export function contentTypeOf(format: OutputFormat): string {
  return `image/${format}`;
}
