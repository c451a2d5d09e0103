/**
 * What every transcription adapter must do, run against each of them by `conformance-transcription.test.ts`. The sentences here
 * are the contract of `workers/providers/provider.ts`.
 */
import { inspect } from 'node:util';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import {
  type Provider,
  ProviderError,
  type ProviderErrorKind,
  type Transcript,
  type TranscriptionCall,
} from '../../../workers/providers/provider.ts';
import { failureOf, SECRET_CREDENTIAL, SECRET_PROMPT } from './conformance.ts';

export type TranscriptionCallChanges = Partial<TranscriptionCall>;

export interface TranscriptionHarness {
  readonly provider: Provider;
  /** What `answered` calls say. */
  readonly text: string;
  answered(changes?: TranscriptionCallChanges): TranscriptionCall;
  hanging(changes?: TranscriptionCallChanges): TranscriptionCall;
  failing(kind: ProviderErrorKind): TranscriptionCall;
  close(): Promise<void>;
}

const KINDS = ['unavailable', 'moderated', 'rejected', 'misconfigured', 'invalid_response'] as const;

export function describeTranscriptionAdapter(
  name: string,
  makeHarness: () => Promise<TranscriptionHarness>,
): void {
  describe(`the ${name} transcription adapter`, () => {
    let harness: TranscriptionHarness;
    function transcribe(call: TranscriptionCall): Promise<Transcript> {
      const { transcription } = harness.provider;
      if (transcription === undefined) throw new Error('The provider has no transcription.');
      return transcription.transcribe(call);
    }

    before(async () => {
      harness = await makeHarness();
    });
    after(() => harness.close());

    it('gives the words that were said', async () => {
      const { text, segments, words } = await transcribe(harness.answered());
      expect(text).to.equal(harness.text);
      expect([segments, words]).to.deep.equal([undefined, undefined]);
    });

    it('gives segments in order of time, which are the text, when they are asked for', async () => {
      const { segments = [], words } = await transcribe(harness.answered({ wantsSegments: true }));
      expect(words).to.equal(undefined);
      expect(segments.map(({ id }) => id)).to.deep.equal([...segments.keys()]);
      expect(segments.map(({ text }) => text).join('')).to.equal(harness.text);
      expectInOrder(segments);
    });

    it('gives the time of each word when that is asked for', async () => {
      const { segments, words = [] } = await transcribe(harness.answered({ wantsWords: true }));
      expect(segments).to.equal(undefined);
      expect(words).to.have.length(harness.text.split(/\s+/).length);
      expectInOrder(words);
    });

    it('leaves the call it was given as it was', async () => {
      const { signal, ...fields } = harness.answered({ wantsWords: true });
      const before = structuredClone(fields);
      await transcribe({ ...fields, signal });
      expect(structuredClone(fields)).to.deep.equal(before);
    });

    for (const kind of KINDS) {
      it(`throws ${kind} when it is so, and shows no prompt and no credential`, async () => {
        const error = await failureOf(transcribe(harness.failing(kind)));
        expect(error).to.be.instanceOf(ProviderError);
        expect((error as ProviderError).kind).to.equal(kind);
        const shown = inspect(error, { depth: 10, showHidden: true });
        expect(shown).to.not.include(SECRET_PROMPT);
        expect(shown).to.not.include(SECRET_CREDENTIAL);
      });
    }

    it('rethrows the reason of a signal that was aborted before', async () => {
      const reason = new Error('The client went away.');
      expect(await failureOf(transcribe(harness.answered({ signal: AbortSignal.abort(reason) })))).to.equal(
        reason,
      );
    });

    it('rethrows the reason within a second when aborted while waiting', async () => {
      const controller = new AbortController();
      const reason = new Error('The deadline passed.');
      const failure = failureOf(transcribe(harness.hanging({ signal: controller.signal })));
      setImmediate(() => controller.abort(reason));
      const abortedAt = performance.now();
      expect(await failure).to.equal(reason);
      expect(performance.now() - abortedAt).to.be.below(1_000);
    });
  });
}

function expectInOrder(parts: readonly { readonly start: number; readonly end: number }[]): void {
  expect(parts).to.not.be.empty;
  let before = 0;
  for (const { start, end } of parts) {
    expect(start).to.be.at.least(before);
    expect(end).to.be.at.least(start);
    before = start;
  }
}

export function transcriptionCall(audio: Buffer, changes: TranscriptionCallChanges = {}): TranscriptionCall {
  return {
    requestId: '018f0000-0000-7000-8000-000000000001',
    upstreamModel: 'u',
    signal: new AbortController().signal,
    audio,
    contentType: 'audio/mpeg',
    fileName: 'audio.mp3',
    wantsSegments: false,
    wantsWords: false,
    ...changes,
  };
}
