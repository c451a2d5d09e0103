/** What goes over the wire for speech and transcription, of both conventions, and how answers are read that are not as they should be. */
import { expect } from 'chai';
import { after, afterEach, before, describe, it } from 'mocha';
import { makeElevenLabsProvider } from '../../../workers/providers/elevenlabs/index.ts';
import type { HttpLimits } from '../../../workers/providers/http-exchange.ts';
import { makeOpenAiProvider } from '../../../workers/providers/openai/index.ts';
import {
  type Provider,
  ProviderError,
  type ProviderErrorKind,
  type SpeechCall,
} from '../../../workers/providers/provider.ts';
import { collected, silentMp3, tonePcm } from '../../helpers/audio.ts';
import { type MockUpstream, startMockUpstream } from '../../helpers/mock-upstream.ts';
import type { MockBehaviour } from '../../helpers/mock-upstream-wire.ts';
import { failureOf } from './conformance.ts';
import { speechCall } from './conformance-speech.ts';
import { transcriptionCall } from './conformance-transcription.ts';

const CREDENTIAL = 'sk-secret';
const MAKERS = { openai: makeOpenAiProvider, elevenlabs: makeElevenLabsProvider };
type Kind = keyof typeof MAKERS;

describe('the wires of speech', () => {
  let upstream: MockUpstream;
  const closers: (() => Promise<void>)[] = [];

  before(async () => {
    upstream = await startMockUpstream({ credential: CREDENTIAL });
  });
  afterEach(() => upstream.reset());
  after(async () => {
    await upstream.close();
    await Promise.all(closers.map((close) => close()));
  });

  function providerOf(kind: Kind, limits: Partial<HttpLimits> = {}): Provider {
    const provider = MAKERS[kind](
      { name: 'mock', kind, baseUrl: upstream.baseUrl, credential: CREDENTIAL },
      { closeGraceMs: 0, ...limits },
    );
    closers.push(() => provider.close());
    return provider;
  }

  function speak(kind: Kind, changes: Partial<SpeechCall> = {}, limits: Partial<HttpLimits> = {}) {
    const { speech } = providerOf(kind, limits);
    if (speech === undefined) throw new Error('no speech');
    return speech.speak(speechCall(changes));
  }

  async function errorOf(
    kind: Kind,
    behaviour: MockBehaviour,
    changes: Partial<SpeechCall> = {},
    limits: Partial<HttpLimits> = {},
  ): Promise<ProviderError> {
    upstream.programNext(behaviour);
    const error = await failureOf(collected(speak(kind, changes, limits)));
    expect(error).to.be.instanceOf(ProviderError);
    return error as ProviderError;
  }

  it('says to an OpenAI server what was asked for, and nothing else', async () => {
    await collected(speak('openai', { format: 'wav', speed: 2, options: { instructions: 'Whisper.' } }));
    await collected(speak('openai'));
    const [full, plain] = upstream.calls;
    expect(full?.path).to.equal('/v1/audio/speech');
    expect(full?.body).to.deep.equal({
      model: 'u',
      input: 'Hello there, how are you?',
      voice: 'alloy',
      response_format: 'wav',
      speed: 2,
      instructions: 'Whisper.',
    });
    expect(plain?.body).to.not.have.any.keys('speed', 'instructions');
  });

  it('says to an ElevenLabs server what was asked for, where it looks for it', async () => {
    const options = {
      seed: 7,
      voice_settings: { stability: 0.4 },
      enable_logging: false,
      language_code: 'ja',
      previous_text: undefined,
    };
    await collected(speak('elevenlabs', { upstreamVoice: 'a/b?c', speed: 1.1, options }));
    const call = upstream.calls[0];
    expect(call?.path).to.equal(
      '/v1/text-to-speech/a%2Fb%3Fc/stream?output_format=mp3_44100_128&enable_logging=false',
    );
    expect(call?.headers).to.include({ 'xi-api-key': CREDENTIAL, accept: 'audio/mpeg' });
    expect(call?.headers).to.not.have.property('authorization');
    expect(call?.body).to.deep.equal({
      text: 'Hello there, how are you?',
      model_id: 'u',
      seed: 7,
      language_code: 'ja',
      voice_settings: { stability: 0.4, speed: 1.1 },
    });
  });

  it('keeps the query of a base address beside that of a call', async () => {
    const provider = makeElevenLabsProvider({
      name: 'mock',
      kind: 'elevenlabs',
      baseUrl: `${upstream.baseUrl}?region=eu`,
      credential: CREDENTIAL,
    });
    closers.push(() => provider.close());
    if (provider.speech === undefined) throw new Error('no speech');
    await collected(provider.speech.speak(speechCall({ format: 'pcm' })));
    expect(upstream.calls[0]?.path).to.match(/stream\?output_format=pcm_24000&region=eu$/);
  });

  for (const kind of ['openai', 'elevenlabs'] as const) {
    it(`refuses options that ${kind} does not know, before anything is sent`, async () => {
      const error = await failureOf(collected(speak(kind, { options: { pitch: 3 } })));
      expect(error).to.include({ kind: 'rejected', param: 'pitch' });
      expect(upstream.count()).to.equal(0);
    });

    it(`gives the first audio of ${kind} while the rest is still to come`, async () => {
      const gate = Promise.withResolvers<void>();
      upstream.programNext({ chunkGate: () => gate.promise });
      const audio = speak(kind)[Symbol.asyncIterator]();
      expect((await audio.next()).done).to.equal(false);
      gate.resolve();
      while ((await audio.next()).done !== true);
    });

    it(`closes ${kind}'s connection when the reader stops, also while it waits`, async () => {
      upstream.programNext({ hang: 1 });
      const audio = speak(kind)[Symbol.asyncIterator]();
      await audio.next();
      const waiting = audio.next();
      await audio.return?.();
      expect((await waiting).done).to.equal(true);
      await upstream.waitForAbort();
    });

    it(`stops reading ${kind} while nobody takes the audio`, async () => {
      const pieces = Array.from({ length: 400 }, () => tonePcm(1.5));
      upstream.programNext({ audio: { pieces }, contentType: 'audio/pcm' });
      const audio = speak(kind, { format: 'pcm' })[Symbol.asyncIterator]();
      await audio.next();
      const call = await upstream.waitForCall();
      // Whatever the sockets hold between them, it is not all of it.
      for (let before = -1; before !== call.bytesWritten; ) {
        before = call.bytesWritten;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      expect(call.bytesWritten).to.be.below(15_000_000);
      await audio.return?.();
    });

    const broken: [string, MockBehaviour, ProviderErrorKind][] = [
      ['no audio at all', { audio: { pieces: [] } }, 'invalid_response'],
      ['an error page', { rawBody: '<html>', contentType: 'text/html' }, 'invalid_response'],
      ['a page that says it is audio', { rawBody: '<html>', contentType: 'audio/mpeg' }, 'invalid_response'],
      ['another format', { audio: { pieces: [Buffer.from('RIFF1234WAVE')] } }, 'invalid_response'],
      ['less than announced', { cutAfterChunks: 4, chunkSpacingMs: 2 }, 'invalid_response'],
      ['a reset after some audio', { reset: 4, chunkSpacingMs: 2 }, 'invalid_response'],
      ['a reset before anything', { reset: 'before-headers' }, 'unavailable'],
      ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1/' } }, 'misconfigured'],
      ['nothing there', { status: 404, error: {} }, 'misconfigured'],
      ['a wrong credential', { status: 403, error: {} }, 'misconfigured'],
      ['too many calls', { status: 429, error: {} }, 'unavailable'],
      ['trouble of its own', { status: 500, error: {} }, 'unavailable'],
      ['too much', { status: 413, error: {} }, 'rejected'],
    ];
    for (const [what, behaviour, expected] of broken) {
      it(`reads ${what} from ${kind} as ${expected}`, async () => {
        expect((await errorOf(kind, behaviour)).kind).to.equal(expected);
      });
    }

    it(`waits for ${kind} only so long, before its headers and in the middle`, async () => {
      const limits = { headersTimeoutMs: 50, idleTimeoutMs: 50 };
      expect((await errorOf(kind, { hang: 'before-headers' }, {}, limits)).kind).to.equal('unavailable');
      expect((await errorOf(kind, { hang: 2 }, {}, limits)).kind).to.equal('unavailable');
    });

    it(`says how long ${kind} asks to wait`, async () => {
      const error = await errorOf(kind, { status: 429, error: {}, retryAfter: '7' });
      expect(error.retryAfterSeconds).to.equal(7);
    });
  }

  describe('errors of ElevenLabs', () => {
    const details: [status: number, detail: unknown, ProviderErrorKind, more?: object][] = [
      [401, { status: 'quota_exceeded', message: 'x' }, 'misconfigured'],
      [401, { status: 'invalid_api_key' }, 'misconfigured'],
      [400, { status: 'voice_not_found' }, 'misconfigured'],
      [400, { status: 'model_not_found' }, 'misconfigured'],
      [402, { type: 'payment_required', code: 'insufficient_credits' }, 'misconfigured'],
      [400, { status: 'content_against_policy' }, 'moderated'],
      [403, { code: 'content_policy_violation' }, 'moderated'],
      [429, { status: 'too_many_concurrent_requests' }, 'unavailable'],
      [429, { status: 'system_busy' }, 'unavailable'],
      [
        400,
        { status: 'max_character_limit_exceeded', message: 'Too long.' },
        'rejected',
        { publicMessage: 'Too long.' },
      ],
      [
        422,
        [{ loc: ['body', 'voice_settings', 'speed'], msg: 'Too fast.', type: 'value_error' }],
        'rejected',
        { publicMessage: 'Too fast.', param: 'speed' },
      ],
      [400, 'A sentence.', 'rejected', { publicMessage: 'A sentence.' }],
      [400, { message: `Your key is ${CREDENTIAL}.` }, 'rejected', { publicMessage: undefined }],
      [500, { status: 'content_against_policy' }, 'unavailable'],
    ];
    for (const [status, detail, kind, more = {}] of details) {
      it(`${status} ${JSON.stringify(detail)} is ${kind}`, async () => {
        const rawBody = JSON.stringify({ detail });
        expect(await errorOf('elevenlabs', { status, rawBody })).to.include({ kind, status, ...more });
      });
    }
  });

  it('lists the voices of an ElevenLabs server, and its models', async () => {
    const provider = makeElevenLabsProvider({
      name: 'mock',
      kind: 'elevenlabs',
      baseUrl: upstream.baseUrl,
      credential: CREDENTIAL,
    });
    closers.push(() => provider.close());
    const signal = new AbortController().signal;
    expect(await provider.speech?.voices?.(signal)).to.deep.equal([
      { upstreamVoice: 'mockvoice1', name: 'Ada' },
      { upstreamVoice: 'mockvoice2', name: 'Bea' },
    ]);
    expect((await provider.check()).models).to.deep.equal(upstream.models);
    for (const rawBody of ['{}', '[]', '<html>', '{"voices":[{}]}', '{"voices":[null]}']) {
      upstream.programNext({ rawBody });
      expect(
        ((await failureOf(provider.speech?.voices?.(signal) ?? Promise.resolve())) as ProviderError).kind,
      ).to.equal('invalid_response');
    }
    upstream.programNext({ status: 401 });
    expect(((await failureOf(provider.check())) as ProviderError).kind).to.equal('misconfigured');
    const reason = new Error('Enough.');
    upstream.programNext({ hang: 'before-headers' });
    expect(await failureOf(provider.check(AbortSignal.abort(reason)))).to.equal(reason);
  });

  describe('of transcription', () => {
    const transcription = () => {
      const { transcription: found } = providerOf('openai');
      if (found === undefined) throw new Error('no transcription');
      return found;
    };
    const audio = silentMp3(1);

    it('send the file under our name, and only what was asked for', async () => {
      await transcription().transcribe(transcriptionCall(audio));
      await transcription().transcribe(
        transcriptionCall(audio, {
          language: 'ja',
          prompt: 'Names: Aiko.',
          temperature: 0.2,
          wantsSegments: true,
          wantsWords: true,
        }),
      );
      const [plain, full] = upstream.calls;
      expect(plain?.body).to.deep.equal({ model: 'u', response_format: 'json' });
      expect(plain?.files[0]).to.include({ field: 'file', name: 'audio.mp3', type: 'audio/mpeg' });
      expect(plain?.files[0]?.bytes.equals(audio)).to.equal(true);
      expect(full?.body).to.deep.equal({
        model: 'u',
        response_format: 'verbose_json',
        'timestamp_granularities[]': ['segment', 'word'],
        language: 'ja',
        prompt: 'Names: Aiko.',
        temperature: '0.2',
      });
    });

    const broken: [string, string][] = [
      ['no text', '{}'],
      ['a text that is a number', '{"text":1}'],
      ['segments that are no list', '{"text":"a","segments":{}}'],
      ['segments of nothing', '{"text":"a","segments":[null]}'],
      ['segments without times', '{"text":"a","segments":[{"text":"a"}]}'],
      ['times before the beginning', '{"text":"a","segments":[{"text":"a","start":-1,"end":1}]}'],
      ['words that are numbers', '{"text":"a","words":[{"word":1,"start":0,"end":1}]}'],
      ['half of the JSON', '{"text":"a"'],
    ];
    for (const [what, rawBody] of broken) {
      it(`read ${what} as no transcript`, async () => {
        upstream.programNext({ rawBody });
        const call = transcriptionCall(audio, { wantsSegments: true, wantsWords: true });
        expect(((await failureOf(transcription().transcribe(call))) as ProviderError).kind).to.equal(
          'invalid_response',
        );
      });
    }

    it('give an end before its beginning as no time at all', async () => {
      upstream.programNext({ rawBody: '{"text":"a","segments":[{"text":"a","start":2,"end":1}]}' });
      const { segments } = await transcription().transcribe(
        transcriptionCall(audio, { wantsSegments: true }),
      );
      expect(segments).to.deep.equal([{ id: 0, start: 2, end: 2, text: 'a' }]);
    });

    it('is not parsed when it would take more memory than there is', async () => {
      upstream.programNext({ rawBody: `{"text":"","x":[{}${',{}'.repeat(4_000_000)}]}` });
      expect(await failureOf(transcription().transcribe(transcriptionCall(audio)))).to.include({
        kind: 'invalid_response',
        isOurLimit: true,
      });
    });

    it('read an error under status 200 as one', async () => {
      upstream.programNext({ rawBody: '{"error":{"code":"content_filter"}}' });
      expect(
        ((await failureOf(transcription().transcribe(transcriptionCall(audio)))) as ProviderError).kind,
      ).to.equal('moderated');
    });
  });
});
