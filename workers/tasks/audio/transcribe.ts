/**
 * audio/transcribe: what is said in a file the caller sent. Nobody has seen anything of it before it is on the books, so it may be
 * done again.
 */
import { extensionOf } from '../../../core/assets/keys.ts';
import type { Logger } from '../../../core/logger.ts';
import {
  TRANSCRIPTION_TASK,
  type TranscriptionJobInput,
  type TranscriptionResult,
  type TranscriptPart,
} from '../../../core/speech.ts';
import { type RunAssets, sayingWhatFailed } from '../../assets.ts';
import type { Places } from '../../places.ts';
import {
  type Provider,
  ProviderError,
  type Transcript,
  type TranscriptionProvider,
} from '../../providers/provider.ts';
import type { Routes } from '../../routes.ts';
import type { Run } from '../../run.ts';
import type { Outcome, PaidTask } from '../../task.ts';

export interface TranscriptionTaskOptions {
  readonly routes: Routes;
  readonly assets: RunAssets;
  readonly logger: Logger;
  readonly places: Places;
}

/** What the ingress reads of a file at most; nothing larger can have been stored. */
const MAX_AUDIO_BYTES = 25 * 1024 * 1024;

export function makeTranscriptionTask(options: TranscriptionTaskOptions): PaidTask<TranscriptionJobInput> {
  return {
    name: TRANSCRIPTION_TASK,
    mayRepeat: () => true,
    hasInputFiles: true,
    perform: (run, input) =>
      options.places.inTurn(
        { accountId: run.payload.accountId, inputBytes: input.audio.byteLength, signal: run.signal },
        () => perform(run, input, options),
      ),
  };
}

async function perform(
  run: Run,
  input: TranscriptionJobInput,
  { routes, assets: everyones, logger }: TranscriptionTaskOptions,
): Promise<Outcome> {
  const { assets } = sayingWhatFailed(everyones, run, logger);
  const { contentType } = input.audio;
  const audio = await assets.readInput(run, input.audio, MAX_AUDIO_BYTES);
  const { transcript, provider } = await routes.call(
    { modelId: run.payload.modelId, isTest: input.isTest, signal: run.signal, times: run.payload },
    async (served, route) => ({
      transcript: await transcriberOf(served).transcribe({
        requestId: run.id,
        upstreamModel: route.upstreamModel,
        signal: run.signal,
        audio,
        contentType,
        fileName: `audio.${extensionOf(contentType)}`,
        language: input.language ?? undefined,
        prompt: input.prompt ?? undefined,
        temperature: input.temperature ?? undefined,
        wantsSegments: input.wantsSegments,
        wantsWords: input.wantsWords,
      }),
      provider: served.name,
    }),
  );
  return {
    kind: 'succeeded',
    costAp: input.costAp,
    usage: { seconds: input.durationMs / 1000 },
    provider,
    body: JSON.stringify(resultOf(run, input, transcript)),
  };
}

function resultOf(run: Run, input: TranscriptionJobInput, transcript: Transcript): TranscriptionResult {
  const { segments, words } = transcript;
  return {
    model: run.payload.modelId,
    format: input.format,
    text: storable(transcript.text),
    language: transcript.language === undefined ? input.language : storable(transcript.language),
    durationMs: input.durationMs,
    segments: segments === undefined || !input.wantsSegments ? null : partsOf(segments),
    words:
      words === undefined || !input.wantsWords
        ? null
        : partsOf(words.map(({ word, start, end }) => ({ text: word, start, end }))),
    costAp: input.costAp,
  };
}

function partsOf(parts: readonly TranscriptPart[]): TranscriptPart[] {
  return parts.map(({ start, end, text }) => ({ start, end, text: storable(text) }));
}

/** Results are kept as text, which takes neither NUL nor half of a surrogate pair. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\ufffd');
}

function transcriberOf(provider: Provider): TranscriptionProvider {
  if (provider.transcription === undefined) {
    throw new ProviderError('misconfigured', `${provider.name} does not transcribe`);
  }
  return provider.transcription;
}
