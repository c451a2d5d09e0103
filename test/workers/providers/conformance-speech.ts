/**
 * What every speech adapter must do, run against each of them by `conformance-speech.test.ts`. An adapter brings a harness
 * that makes its kinds of calls; the sentences here are the contract of `workers/providers/provider.ts`.
 */
import { inspect } from 'node:util';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import {
  type Provider,
  ProviderError,
  type ProviderErrorKind,
  type SpeechCall,
} from '../../../workers/providers/provider.ts';
import { collected, decoded } from '../../helpers/audio.ts';
import { failureOf, SECRET_CREDENTIAL, SECRET_PROMPT } from './conformance.ts';

export type SpeechCallChanges = Partial<SpeechCall>;

export interface SpeechHarness {
  readonly provider: Provider;
  /** Answered with audio that fits the text. */
  answered(changes?: SpeechCallChanges): SpeechCall;
  /** Never answered, not even its headers. */
  hanging(changes?: SpeechCallChanges): SpeechCall;
  /** Breaks off after some audio. */
  cut(changes?: SpeechCallChanges): SpeechCall;
  failing(kind: ProviderErrorKind, changes?: SpeechCallChanges): SpeechCall;
  close(): Promise<void>;
}

const KINDS = ['unavailable', 'moderated', 'rejected', 'misconfigured', 'invalid_response'] as const;
const RATE = 24_000;
const SENTENCE = 'The quick brown fox jumps over the lazy dog. ';

export function describeSpeechAdapter(name: string, makeHarness: () => Promise<SpeechHarness>): void {
  describe(`the ${name} speech adapter`, () => {
    let harness: SpeechHarness;
    const speech = () => {
      if (harness.provider.speech === undefined) throw new Error('The provider has no speech.');
      return harness.provider.speech;
    };

    before(async () => {
      harness = await makeHarness();
    });
    after(() => harness.close());

    it('makes bare samples, from which every other format can be made', () => {
      expect(speech().formats).to.include('pcm');
    });

    it('gives audio in each of its formats that decodes and lasts as long as the text', async () => {
      const text = SENTENCE.repeat(2);
      for (const format of speech().formats) {
        const audio = await collected(speech().speak(harness.answered({ text, format })));
        const seconds = format === 'pcm' ? audio.length / 2 / RATE : (await decoded(audio)).length / RATE;
        expect(seconds, format).to.be.closeTo(text.length / 15, 0.2);
      }
    });

    it('speaks faster when asked to', async () => {
      const audio = await collected(
        speech().speak(harness.answered({ text: SENTENCE.repeat(2), format: 'pcm', speed: 1.2 })),
      );
      expect(audio.length / 2 / RATE).to.be.closeTo(90 / 15 / 1.2, 0.2);
    });

    it('gives audio piece by piece', async () => {
      let pieces = 0;
      for await (const piece of speech().speak(
        harness.answered({ text: SENTENCE.repeat(4), format: 'pcm' }),
      )) {
        expect(piece.length).to.be.greaterThan(0);
        pieces += 1;
      }
      expect(pieces).to.be.greaterThan(2);
    });

    it('leaves the call it was given as it was', async () => {
      const call = harness.answered({ options: {} });
      const { signal: _signal, ...fields } = call;
      const before = structuredClone(fields);
      await collected(speech().speak(call));
      const { signal: _after, ...now } = call;
      expect(structuredClone(now)).to.deep.equal(before);
    });

    for (const kind of KINDS) {
      it(`throws ${kind} when it is so, and shows no text and no credential`, async () => {
        const error = await failureOf(collected(speech().speak(harness.failing(kind))));
        expect(error).to.be.instanceOf(ProviderError);
        expect((error as ProviderError).kind).to.equal(kind);
        const shown = inspect(error, { depth: 10, showHidden: true });
        expect(shown).to.not.include(SECRET_PROMPT);
        expect(shown).to.not.include(SECRET_CREDENTIAL);
      });
    }

    it('throws when the audio breaks off, after what came', async () => {
      let bytes = 0;
      const error = await failureOf(
        (async () => {
          for await (const piece of speech().speak(harness.cut({ text: SENTENCE.repeat(4), format: 'pcm' })))
            bytes += piece.length;
        })(),
      );
      expect((error as ProviderError).kind).to.equal('invalid_response');
      expect(bytes).to.be.greaterThan(0);
    });

    it('rethrows the reason of a signal that was aborted before', async () => {
      const reason = new Error('The client went away.');
      const call = harness.answered({ signal: AbortSignal.abort(reason) });
      expect(await failureOf(collected(speech().speak(call)))).to.equal(reason);
    });

    it('rethrows the reason within a second when aborted while waiting', async () => {
      const controller = new AbortController();
      const reason = new Error('The deadline passed.');
      const failure = failureOf(collected(speech().speak(harness.hanging({ signal: controller.signal }))));
      setImmediate(() => controller.abort(reason));
      const abortedAt = performance.now();
      expect(await failure).to.equal(reason);
      expect(performance.now() - abortedAt).to.be.below(1_000);
    });

    it('rethrows the reason when aborted in the middle', async () => {
      const controller = new AbortController();
      const reason = new Error('Cancelled.');
      const call = harness.answered({ signal: controller.signal, text: SENTENCE.repeat(8), format: 'pcm' });
      const iterator = speech().speak(call)[Symbol.asyncIterator]();
      await iterator.next();
      controller.abort(reason);
      const error = await failureOf(
        (async () => {
          while ((await iterator.next()).done !== true);
        })(),
      );
      expect(error).to.equal(reason);
      expect((await iterator.next()).done).to.equal(true);
    });

    it('ends quietly when the reader stops', async () => {
      const iterator = speech()
        .speak(harness.answered({ text: SENTENCE.repeat(4) }))
        [Symbol.asyncIterator]();
      await iterator.next();
      expect((await iterator.return?.())?.done).to.equal(true);
      expect((await iterator.next()).done).to.equal(true);
    });
  });
}

/** A call for a few words, with nothing said that need not be. */
export function speechCall(changes: SpeechCallChanges = {}): SpeechCall {
  return {
    requestId: '018f0000-0000-7000-8000-000000000001',
    upstreamModel: 'u',
    signal: new AbortController().signal,
    text: 'Hello there, how are you?',
    upstreamVoice: 'alloy',
    format: 'mp3',
    speed: undefined,
    options: {},
    ...changes,
  };
}
