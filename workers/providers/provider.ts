/**
 * The interfaces a provider adapter implements, one per capability, and the one error it throws.
 * An adapter maps wire to types and nothing else: no SQL, no money, no HTTP contexts of ours.
 */
import type { Readable } from 'node:stream';

import type { AudioFormat } from '../../core/audio/formats.ts';

/** Token counts as the provider reported them; `undefined` when it reported none. */
export interface TokenUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** The provider's whole usage object (details such as reasoning or cached tokens), passed on as it came. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** Room for one answer in this process's memory. Left by who entered when the call fails; of what is given, by who called. */
export interface AnswerRoom {
  /** Resolves when there is room for a body of at most so many bytes: at once when it was entered before and not left. */
  enter(mostBytes: number): Promise<void>;
  /** May be entered again. */
  leave(): void;
}

export interface GrowingRoom extends AnswerRoom {
  /** Awaited once the body is here, before it is parsed: what becomes of it takes so many bytes. Not without having entered. */
  grow(bytes: number): Promise<void>;
}

/** What one chat call asks of a provider. */
export interface ChatCall {
  /** Our request id (UUID), sent upstream as an idempotency and tracing aid where the wire has a place for it. */
  readonly requestId: string;
  /** The model name the provider knows. */
  readonly upstreamModel: string;
  /** The caller's validated body, fields of the convention only; `model`, the output cap and stream options are the adapter's to overwrite. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Tokens the provider may produce per choice; written as the field the caller used, else the model's. */
  readonly outputCapTokens: number;
  /** The longest prompt that the request is held for: a longer one is longer than the model's context. */
  readonly promptCapTokens?: number;
  /** Aborts the upstream call: client gone, request cancelled, deadline passed, worker stopping. */
  readonly signal: AbortSignal;
  /** For a whole answer that is no small one. */
  readonly room?: GrowingRoom | undefined;
}

/** A whole completion: the provider's JSON object as it came, and its usage. */
export interface ChatCompletion {
  readonly completion: Readonly<Record<string, unknown>>;
  readonly usage: TokenUsage | undefined;
}

/** One streamed chunk: the provider's JSON object as it came; `usage` set on the chunk that carries it. */
export interface ChatChunk {
  readonly chunk: Readonly<Record<string, unknown>>;
  readonly usage: TokenUsage | undefined;
}

export interface ChatProvider {
  /** Resolves with the whole answer, or throws `ProviderError`. */
  complete(call: ChatCall): Promise<ChatCompletion>;
  /**
   * Yields chunks as the provider sends them; pausing the iteration pauses the upstream socket; `return()` aborts the call.
   * Ends normally only when the provider finished properly (every choice has a finish reason); a cut stream throws.
   */
  stream(call: ChatCall): AsyncIterable<ChatChunk>;
}

/** A picture the caller brought: decoded and limited by the ingress, of the content type its bytes have. */
export interface ImageInput {
  readonly contentType: string;
  readonly byteLength: number;
  /** Anew for each try. Read when it is sent, so that nothing of it is in memory while the answer is waited for. */
  open(): Promise<Readable>;
}

/** What one image call asks of a provider. */
export interface ImageCall {
  readonly requestId: string;
  readonly upstreamModel: string;
  readonly signal: AbortSignal;
  readonly prompt: string;
  /** Pictures wanted, 1 to 4. */
  readonly count: number;
  /** `<width>x<height>` in pixels. */
  readonly size: string;
  readonly quality: string | undefined;
  readonly background?: string | undefined;
  readonly outputFormat: 'png' | 'jpeg' | 'webp';
  /** 0 to 100, for jpeg and webp. */
  readonly outputCompression?: number | undefined;
  readonly moderation?: string | undefined;
  readonly user?: string | undefined;
  readonly seed?: number | undefined;
  readonly inputFidelity?: string | undefined;
  /** Partial pictures wanted of each, 0 to 3; only `stream` gives them. */
  readonly partialImages: number;
  /** An edit when there is one or more. */
  readonly images: readonly ImageInput[];
  /** Transparent where the first of `images` is to be changed. */
  readonly mask: ImageInput | undefined;
  /** Entered before more than the beginning of an answer with pictures, or of an event with one, is read. */
  readonly room?: AnswerRoom | undefined;
}

/** A picture as the provider sent it: bounded in bytes, not yet looked into. */
export interface ProducedImage {
  readonly bytes: Buffer;
  /** The prompt as the provider rewrote it, where it says so. */
  readonly revisedPrompt?: string | undefined;
}

export interface ProducedImages {
  /** As many as asked for. */
  readonly images: readonly ProducedImage[];
  /** The provider's usage object as it came. */
  readonly usage: Readonly<Record<string, unknown>> | undefined;
}

export type ImageEvent =
  | {
      readonly kind: 'partial';
      /** Of the picture it belongs to, 0-based. */
      readonly index: number;
      /** 0-based; later ones are nearer to the finished picture. */
      readonly partialIndex: number;
      readonly bytes: Buffer;
    }
  | {
      readonly kind: 'image';
      readonly index: number;
      readonly image: ProducedImage;
      /** Of this picture; a provider that reports one for all of them sends it with the last. */
      readonly usage?: Readonly<Record<string, unknown>> | undefined;
    };

export interface ImageProvider {
  /** Resolves with all the pictures, or throws `ProviderError`. */
  produce(call: ImageCall): Promise<ProducedImages>;
  /**
   * Yields partial pictures as they come, then each finished one; pausing the iteration pauses the upstream; `return()` aborts
   * the call. Ends normally only when all `count` pictures came; a cut stream throws.
   */
  stream(call: ImageCall): AsyncIterable<ImageEvent>;
}

/** What one speech call asks of a provider. */
export interface SpeechCall {
  readonly requestId: string;
  readonly upstreamModel: string;
  readonly signal: AbortSignal;
  readonly text: string;
  /** The voice as the provider names it. */
  readonly upstreamVoice: string;
  /** One of the provider's own `formats`. */
  readonly format: AudioFormat;
  /** 1 is the voice's own pace. */
  readonly speed: number | undefined;
  /**
   * What else the caller asked for, validated: of the OpenAI convention `instructions`, of the ElevenLabs convention
   * `voice_settings`, `seed`, `language_code` and the like. An adapter that does not know one throws `rejected`.
   */
  readonly options: Readonly<Record<string, unknown>>;
}

/** A voice as its provider lists it. */
export interface ProviderVoice {
  readonly upstreamVoice: string;
  readonly name: string;
}

export interface SpeechProvider {
  /** Formats it makes itself, `pcm` always among them: others are transcoded from that (core/audio/transcode.ts). */
  readonly formats: readonly AudioFormat[];
  /**
   * Yields audio as the provider sends it; pausing the iteration pauses the upstream socket; `return()` aborts the call. Ends
   * normally only when the provider finished properly (the body's end, the length it announced) and sent any audio at all; a
   * cut stream throws.
   */
  speak(call: SpeechCall): AsyncIterable<Buffer>;
  /** Its voices, where it lists them. */
  voices?(signal: AbortSignal): Promise<readonly ProviderVoice[]>;
}

/** What one transcription call asks of a provider. */
export interface TranscriptionCall {
  readonly requestId: string;
  readonly upstreamModel: string;
  readonly signal: AbortSignal;
  /** Measured and limited by the ingress, of the content type its bytes have. */
  readonly audio: Buffer;
  readonly contentType: string;
  /** Made by us from the real type; never the caller's. */
  readonly fileName: string;
  /** ISO 639-1. */
  readonly language?: string | undefined;
  readonly prompt?: string | undefined;
  readonly temperature?: number | undefined;
  readonly wantsSegments: boolean;
  readonly wantsWords: boolean;
}

/** A stretch of speech; times in seconds from the start of the audio. */
export interface TranscriptSegment {
  /** 0-based. */
  readonly id: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export interface TranscriptWord {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

export interface Transcript {
  readonly text: string;
  /** As the provider names it: a code or an English name. */
  readonly language?: string | undefined;
  /** In order of time; given when asked for, where the provider can. */
  readonly segments?: readonly TranscriptSegment[] | undefined;
  readonly words?: readonly TranscriptWord[] | undefined;
}

export interface TranscriptionProvider {
  /** Resolves with the whole transcript, or throws `ProviderError`. */
  transcribe(call: TranscriptionCall): Promise<Transcript>;
}

export interface Provider {
  readonly name: string;
  readonly kind: string;
  readonly chat?: ChatProvider | undefined;
  readonly image?: ImageProvider | undefined;
  readonly speech?: SpeechProvider | undefined;
  readonly transcription?: TranscriptionProvider | undefined;
  /** Closes sockets, once calls under way are done or `graceMs` is over; called at shutdown and when the catalogue changes the provider. */
  close(graceMs?: number): Promise<void>;
}

/** How a provider is configured by the catalogue. */
export interface ProviderConfig {
  readonly name: string;
  readonly kind: string;
  readonly baseUrl: string | undefined;
  /** The credential's value, read from the environment variable the catalogue names; never logged. */
  readonly credential: string | undefined;
}

/**
 * - `unavailable`: connection refused or reset, 5xx, 429, timeout; another try or route may work
 * - `rejected`: the provider says the request itself is wrong (400, 404, 413, 422): the caller's fault
 * - `moderated`: its safety system declined
 * - `misconfigured`: our credential or upstream model is wrong (401, 403, 404): another route may work
 * - `invalid_response`: broken JSON, wrong shape, cut stream, over the size limit, implausible usage
 */
export type ProviderErrorKind =
  | 'unavailable'
  | 'rejected'
  | 'moderated'
  | 'misconfigured'
  | 'invalid_response';

export class ProviderError extends Error {
  readonly kind: ProviderErrorKind;
  readonly status: number | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** For `rejected`: the provider's own words, safe to show the caller (bounded, no credential). */
  readonly publicMessage: string | undefined;
  /** For `rejected`: the parameter the provider named. */
  readonly param: string | undefined;
  /** A limit of ours ended a call that the provider was answering well: what a caller got of it is charged. */
  readonly isOurLimit: boolean;
  /** It was waited for long enough. */
  readonly isTimeout: boolean;

  constructor(
    kind: ProviderErrorKind,
    message: string,
    options: {
      status?: number | undefined;
      retryAfterSeconds?: number | undefined;
      publicMessage?: string | undefined;
      param?: string | undefined;
      isOurLimit?: boolean;
      isTimeout?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ProviderError';
    this.kind = kind;
    this.status = options.status;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.publicMessage = options.publicMessage;
    this.param = options.param;
    this.isOurLimit = options.isOurLimit ?? false;
    this.isTimeout = options.isTimeout ?? false;
  }

  /** The same call may succeed when made again (after a pause). Who kept us waiting is not waited for again. */
  get isRetryable(): boolean {
    return this.kind === 'unavailable' && !this.isTimeout;
  }

  /** Another route may serve what this one could not; our own limits would meet it there too. */
  get isRoutable(): boolean {
    return this.kind !== 'rejected' && this.kind !== 'moderated' && !this.isOurLimit;
  }
}
