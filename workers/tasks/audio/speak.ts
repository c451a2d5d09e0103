/**
 * audio/speak: a text as audio, to the caller and into a file while the provider makes it. The file is shown from the moment the
 * request is on the books; what a run that came to nothing has stored is never seen and swept by housekeeping.
 */
import { Readable } from 'node:stream';
import type { AssetFile } from '../../../core/assets/files.ts';
import { AssetTooLarge } from '../../../core/assets/store.ts';
import { AUDIO_CONTENT_TYPES } from '../../../core/audio/formats.ts';
import type { Logger } from '../../../core/logger.ts';
import {
  MAX_SPEECH_BYTES,
  SPEECH_TASK,
  type SpeechDetails,
  type SpeechJobInput,
  type SpeechResult,
} from '../../../core/speech.ts';
import { type RunAssets, storeFailure } from '../../assets.ts';
import type { Places } from '../../places.ts';
import { type Provider, ProviderError, type SpeechProvider } from '../../providers/provider.ts';
import type { Routes } from '../../routes.ts';
import type { Run } from '../../run.ts';
import type { Outcome, PaidTask } from '../../task.ts';
import { audioOf } from './formats.ts';
import { AudioSender } from './sender.ts';

export interface SpeechTaskOptions {
  readonly routes: Routes;
  readonly assets: RunAssets;
  readonly logger: Logger;
  readonly places: Places;
}

/** Bytes of audio between provider and store. */
const STORE_BUFFER_BYTES = 64 * 1024;

export function makeSpeechTask(options: SpeechTaskOptions): PaidTask<SpeechJobInput> {
  return {
    name: SPEECH_TASK,
    // what was heard of one run cannot be joined with what another makes
    mayRepeat: (payload) => !payload.isStream,
    isCollected: true,
    storesEvents: false,
    perform: (run, input) =>
      options.places.inTurn({ accountId: run.payload.accountId, inputBytes: 0, signal: run.signal }, () =>
        perform(run, input, options),
      ),
  };
}

async function perform(run: Run, input: SpeechJobInput, options: SpeechTaskOptions): Promise<Outcome> {
  const isHeard = () => run.payload.ingressId !== null && run.eventCount > 0;
  try {
    return await speak(run, input, options, isHeard);
  } catch (error) {
    // what its caller stops was given to the provider whole, and what was heard of it cannot be taken back: it is paid for
    if (run.abortCause !== 'client_gone' || !isHeard()) throw error;
    return { kind: 'cancelled', costAp: input.costAp, usage: usageView(input) };
  }
}

async function speak(
  run: Run,
  input: SpeechJobInput,
  options: SpeechTaskOptions,
  isHeard: () => boolean,
): Promise<Outcome> {
  const { modelId } = run.payload;
  const { file, lastEvents, provider } = await options.routes.call(
    {
      modelId,
      isTest: input.isTest,
      signal: run.signal,
      times: run.payload,
      provider: input.provider,
    },
    async (served, route) => {
      const ended = new AbortController();
      const call = {
        requestId: run.id,
        upstreamModel: route.upstreamModel,
        signal: AbortSignal.any([run.signal, ended.signal]),
        text: input.text,
        upstreamVoice: input.upstreamVoice,
        speed: input.speed ?? undefined,
        options: input.options,
      };
      const sender = new AudioSender(run);
      const audio = begun(sender.passOn(audioOf(speechOf(served), call, input.format)));
      try {
        const made = await store(run, input, audio, sender, options);
        return { file: made, lastEvents: sender.lastEvents(), provider: served.name };
      } catch (error) {
        ended.abort(error); // a provider that nobody reads any more
        throw error;
      }
    },
    isHeard,
  );
  run.signal.throwIfAborted();
  const result: SpeechResult = {
    asset: file.id,
    contentType: file.contentType,
    bytes: file.bytes,
    model: modelId,
    voice: input.voice,
    characters: input.characters,
    costAp: input.costAp,
  };
  return {
    kind: 'succeeded',
    costAp: input.costAp,
    usage: { ...usageView(input), bytes: file.bytes },
    provider,
    body: JSON.stringify(result),
    lastEvents,
    assets: [file],
    cacheKey: input.cacheKey,
  };
}

function usageView({ characters, voice, format }: SpeechJobInput): Record<string, unknown> {
  return { characters, voice, format };
}

async function* fromFirst(
  first: Promise<IteratorResult<Buffer>>,
  audio: AsyncGenerator<Buffer>,
): AsyncGenerator<Buffer> {
  for (let item = await first; item.done !== true; item = await audio.next()) yield item.value;
}

/** Asks for the first of it at once: the provider is at work, and heard, while the row and the file are begun. */
function begun(audio: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const first = audio.next();
  first.catch(() => {}); // told to whoever reads
  return fromFirst(first, audio);
}

/** Throws what the provider threw, before what the store made of that. */
async function store(
  run: Run,
  { format, voice, characters }: SpeechJobInput,
  audio: AsyncGenerator<Buffer>,
  sender: AudioSender,
  { assets, logger }: Pick<SpeechTaskOptions, 'assets' | 'logger'>,
): Promise<AssetFile> {
  const body = Readable.from(audio, { objectMode: false, highWaterMark: STORE_BUFFER_BYTES });
  try {
    const [file] = await assets.put(run, [
      {
        kind: 'audio',
        position: 0,
        contentType: AUDIO_CONTENT_TYPES[format],
        body,
        maxBytes: MAX_SPEECH_BYTES,
        details: { voice, characters } satisfies SpeechDetails,
      },
    ]);
    if (file === undefined) throw new Error('a speech was not stored');
    if (file.bytes === 0) throw new ProviderError('invalid_response', 'no audio');
    return file;
  } catch (error) {
    run.signal.throwIfAborted();
    if (error instanceof AssetTooLarge) {
      throw new ProviderError('invalid_response', 'more audio than anybody can have asked for', {
        cause: error,
      });
    }
    if (sender.failure !== undefined) throw sender.failure;
    if (error instanceof ProviderError) throw error;
    throw storeFailure(error, run, logger);
  }
}

function speechOf(provider: Provider): SpeechProvider {
  if (provider.speech === undefined) {
    throw new ProviderError('misconfigured', `${provider.name} does not speak`);
  }
  return provider.speech;
}
