/** The second voice family, with the client it is meant for: only its base address and key are ours. */
import { ElevenLabsClient, ElevenLabsError } from '@elevenlabs/elevenlabs-js';
import { expect } from 'chai';
import { after, afterEach, before, beforeEach, describe, it } from 'mocha';
import { type AudioMeter, makeAudioMeter } from '../../core/audio/measure.ts';
import { type TestCaller, withTestService } from '../helpers/service.ts';
import { makeSpeechModels, STUDIO_VOICE, VOICE } from '../helpers/speech-models.ts';

const TEXT = '[whispers] The quick brown fox.';
const V2 = 'tts_multilingual_v2';
const V3 = 'tts_v3';
const STORYTELLER = 'storyteller';
const costOf = (text: string, apPer1k: number): number => Math.ceil((text.length * apPer1k) / 1000);

async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

describe('the ElevenLabs client', () => {
  const service = withTestService();
  let meter: AudioMeter;
  let caller: TestCaller;
  let client: ElevenLabsClient;
  let expectedCharges: number[];

  before('models that speak', async () => {
    meter = makeAudioMeter();
    await makeSpeechModels(service);
  });
  after(() => meter.close());
  beforeEach(async () => {
    caller = await service.makeCaller();
    client = new ElevenLabsClient({
      baseUrl: `${service.urls[0]}/v1/el`,
      apiKey: caller.secret,
      maxRetries: 0,
    });
    expectedCharges = [];
  });
  afterEach('the ledger is exact', async () => {
    expect(await service.chargesOf(caller.accountId), 'charges').to.deep.equal(expectedCharges);
  });

  it('lists voices, without those of the one further provider, and the two models', async () => {
    const { voices } = await client.voices.getAll();
    expect(voices.map(({ voiceId }) => voiceId)).to.deep.equal([VOICE, STORYTELLER]);
    expect(voices[0]).to.include({ name: 'Narrator', description: 'calm' });
    expect(voices[0]?.highQualityBaseModelIds).to.deep.equal([V2, V3]);
    const models = await client.models.list();
    expect(models.map(({ modelId }) => modelId)).to.deep.equal([V2, V3]);
    expect(models[0]).to.include({ canDoTextToSpeech: true, maximumTextLengthPerRequest: 5000 });
    const { json } = await service.get('/v1/el/voices', caller);
    expect(json).to.deep.equal({
      voices: [
        { id: VOICE, name: 'Narrator' },
        { id: STORYTELLER, name: 'Storyteller' },
      ],
      models: [V2, V3],
    });
    expect((await client.voices.get(STORYTELLER)).name).to.equal('Storyteller');
  });

  it('searches voices, page by page', async () => {
    const first = await client.voices.search({ pageSize: 1 });
    expect([first.voices[0]?.voiceId, first.hasMore, first.totalCount]).to.deep.equal([VOICE, true, 2]);
    const second = await client.voices.search({ pageSize: 1, nextPageToken: first.nextPageToken ?? '' });
    expect([second.voices[0]?.voiceId, second.hasMore]).to.deep.equal([STORYTELLER, false]);
    const found = await client.voices.search({ search: 'WARM' });
    expect(found.voices.map(({ voiceId }) => voiceId)).to.deep.equal([STORYTELLER]);
  });

  it('speaks, whole and streamed, with tags for the model that reads them', async () => {
    const whole = await client.textToSpeech
      .convert(STORYTELLER, { text: TEXT, modelId: V3 })
      .withRawResponse();
    expect(Object.fromEntries(whole.rawResponse.headers)).to.include({
      'content-type': 'audio/mpeg',
      'x-svc-model': V3,
      'x-svc-voice': STORYTELLER,
      'x-svc-ap-cost': String(costOf(TEXT, 300)),
    });
    const audio = await bytesOf(whole.data);
    expect((await meter.measure(audio)).type).to.equal('mp3');
    // the same again, by the streaming path, is the same speech
    const streamed = await client.textToSpeech
      .stream(STORYTELLER, { text: TEXT, modelId: V3 })
      .withRawResponse();
    expect(streamed.rawResponse.headers.get('x-svc-cached')).to.equal('true');
    expect((await bytesOf(streamed.data)).equals(audio)).to.equal(true);
    expectedCharges = [costOf(TEXT, 300)];
  });

  it('takes the voice’s own model where none is named, and the formats that are made', async () => {
    const wav = await client.textToSpeech
      .convert(STORYTELLER, { text: 'Hello', outputFormat: 'wav_24000', enableLogging: true })
      .withRawResponse();
    expect(wav.rawResponse.headers.get('x-svc-model')).to.equal(V3);
    expect((await meter.measure(await bytesOf(wav.data))).type).to.equal('wav');
    const own = await client.textToSpeech.convert(VOICE, { text: 'Hello' }).withRawResponse();
    expect(own.rawResponse.headers.get('x-svc-model')).to.equal(V2);
    await bytesOf(own.data);
    expectedCharges = [costOf('Hello', 300), costOf('Hello', 200)];
  });

  it('is refused in our words, with a status of its own', async () => {
    const refused = async (call: PromiseLike<unknown>): Promise<unknown[]> => {
      try {
        await call;
      } catch (error) {
        if (!(error instanceof ElevenLabsError)) throw error;
        const body = error.body as { error: { code: string }; param?: string };
        return [error.statusCode, body.error.code, body.param];
      }
      throw new Error('the call was not refused');
    };
    const { textToSpeech } = client;
    expect(await refused(textToSpeech.convert(VOICE, { text: TEXT, modelId: V2 }))).to.deep.equal([
      400,
      'unsupported_parameter',
      'text',
    ]);
    expect(await refused(textToSpeech.stream(VOICE, { text: 'Hi', modelId: 'eleven_v3' }))).to.deep.equal([
      404,
      'model_not_found',
      'model_id',
    ]);
    expect(await refused(textToSpeech.convert(STUDIO_VOICE, { text: 'Hi' }))).to.deep.equal([
      400,
      'invalid_parameter',
      'voice_id',
    ]);
    expect(await refused(client.voices.get('nobody'))).to.deep.equal([404, 'not_found', undefined]);
    const stranger = new ElevenLabsClient({
      baseUrl: `${service.urls[0]}/v1/el`,
      apiKey: 'x',
      maxRetries: 0,
    });
    expect(await refused(stranger.models.list())).to.deep.equal([401, 'invalid_api_key', undefined]);
  });

  it('has a path of ours beside it, with the bearer key', async () => {
    const body = { text: TEXT, voice: VOICE, model: V3 };
    const answer = await service.post('/v1/el/tts', { ...caller, body });
    expect(answer.status).to.equal(200);
    expect(Object.fromEntries(answer.headers)).to.include({
      'content-type': 'audio/mpeg',
      'x-svc-model': V3,
      'x-svc-voice': VOICE,
    });
    expectedCharges = [costOf(TEXT, 300)];
  });
});
