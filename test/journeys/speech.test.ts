/** Speech as users meet it: the official clients in front, the sandbox behind, audio that is audio, the books exact. */
import { expect } from 'chai';
import { after, afterEach, before, beforeEach, describe, it } from 'mocha';
import OpenAI from 'openai';
import { type AudioMeter, makeAudioMeter } from '../../core/audio/measure.ts';
import { type TestCaller, withTestService } from '../helpers/service.ts';
import { makeSpeechModels, SPEECH_MODEL, STUDIO_VOICE, VOICE } from '../helpers/speech-models.ts';
import { ONCE, refusalOf } from './openai-client.ts';

const BALANCE_AP = 100_000;
const TEXT = 'The quick brown fox jumps over the lazy dog.';
const COST_AP = Math.ceil((TEXT.length * 200) / 1000);
/** Bytes a second of bare samples: 24 kHz, 16 bits, one channel. */
const PCM_BYTES_PER_SECOND = 48_000;

describe('speech with the official client', () => {
  const service = withTestService();
  let meter: AudioMeter;
  let caller: TestCaller;
  let client: OpenAI;
  let expectedCharges: number[];

  before('models that speak', async () => {
    meter = makeAudioMeter();
    await makeSpeechModels(service);
  });
  after(() => meter.close());
  beforeEach(async () => {
    caller = await service.makeCaller({ balanceAp: BALANCE_AP });
    client = new OpenAI({ baseURL: `${service.urls[0]}/v1`, apiKey: caller.secret, ...ONCE });
    expectedCharges = [];
  });
  afterEach('the ledger is exact', async () => {
    expect(await service.chargesOf(caller.accountId), 'charges').to.deep.equal(expectedCharges);
    const left = BALANCE_AP - expectedCharges.reduce((sum, ap) => sum + ap, 0);
    expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: left, heldAp: 0 });
  });

  type Changes = Partial<OpenAI.Audio.SpeechCreateParams>;
  const say = (changes: Changes = {}, options?: OpenAI.RequestOptions) =>
    client.audio.speech.create({ model: SPEECH_MODEL, voice: VOICE, input: TEXT, ...changes }, options);
  const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

  it('is audio that lasts as long as the text takes to say, and says what it cost', async () => {
    const response = await say();
    expect(Object.fromEntries(response.headers)).to.include({
      'content-type': 'audio/mpeg',
      'x-svc-ap-cost': String(COST_AP),
      'x-svc-model': SPEECH_MODEL,
      'x-svc-voice': VOICE,
      'x-svc-cached': 'false',
    });
    const { type, durationMs } = await meter.measure(await bytesOf(response));
    expect(type).to.equal('mp3');
    expect(durationMs).to.be.within(1500, 6000);
    expectedCharges = [COST_AP];
  });

  it('comes in every format that is offered, each as long as the others', async () => {
    const bare = await say({ response_format: 'pcm' });
    expect(bare.headers.get('content-type')).to.equal('audio/pcm');
    const expectedMs = ((await bytesOf(bare)).length / PCM_BYTES_PER_SECOND) * 1000;
    for (const [format, type] of [
      ['mp3', 'audio/mpeg'],
      ['wav', 'audio/wav'],
      ['opus', 'audio/ogg'],
      ['flac', 'audio/flac'],
    ] as const) {
      const response = await say({ response_format: format });
      expect(response.headers.get('content-type'), format).to.equal(type);
      const { contentType, durationMs } = await meter.measure(await bytesOf(response));
      expect(contentType, format).to.equal(type);
      expect(durationMs, format).to.be.within(expectedMs - 150, expectedMs + 150);
    }
    const aac = await say({ response_format: 'aac' });
    expect(aac.headers.get('content-type')).to.equal('audio/aac');
    expect((await bytesOf(aac)).readUInt16BE(0) & 0xfff6, 'an ADTS frame').to.equal(0xfff0);
    expectedCharges = Array<number>(6).fill(COST_AP);
  });

  it('is faster or slower where that is asked for', async () => {
    const lengths: number[] = [];
    for (const speed of [0.5, 1, 2])
      lengths.push((await bytesOf(await say({ response_format: 'pcm', speed }))).length);
    const [slow = 0, usual = 0, fast = 0] = lengths;
    expect(slow / usual).to.be.within(1.7, 2.3);
    expect(usual / fast).to.be.within(1.7, 2.3);
    expectedCharges = [COST_AP, COST_AP, COST_AP];
  });

  it('takes the voice as an object too, and its own model where none is named', async () => {
    const body = { input: TEXT, voice: { id: STUDIO_VOICE }, model: undefined };
    const response = await client.audio.speech.create(body as never);
    await bytesOf(response);
    expect(response.headers.get('x-svc-model')).to.equal(SPEECH_MODEL);
    expect(response.headers.get('x-svc-voice')).to.equal(STUDIO_VOICE);
    expectedCharges = [COST_AP];
  });

  const texts: readonly (readonly [string, string, number])[] = [
    ['Japanese', 'こんにちは、世界。', 9],
    ['an emoji of one code point', '🙂', 1],
    ['a family of seven code points that looks like one', '👨‍👩‍👧‍👦', 7],
    ['a letter and a combining mark', 'e\u0301', 2],
    ['white space and an expression tag', ' [whispers] Hi', 14],
    ['a thousand letters and one', 'a'.repeat(1001), 1001],
  ];
  for (const [what, text, characters] of texts) {
    it(`costs by the code point, as the estimate said: ${what}`, async () => {
      const estimate = await service.post('/v1/audio/estimate', { body: { text, voice: VOICE } });
      const costAp = Math.ceil((characters * 200) / 1000);
      expect(estimate.status).to.equal(200);
      expect(estimate.json).to.deep.include({
        text_length: characters,
        ap_cost: costAp,
        jpy_cost: Math.ceil(costAp * 0.015),
      });
      expect(estimate.json.estimated_duration_sec).to.be.above(0);
      const response = await say({ input: text });
      expect(response.headers.get('x-svc-ap-cost')).to.equal(String(costAp));
      await bytesOf(response);
      expectedCharges = [costAp];
    });
  }

  it('is estimated without a voice, in the caller’s language, by every address', async () => {
    const body = { text: 'Hello' };
    const english = await service.post('/v1/tts/estimate', { body });
    expect(english.json.pricing.rate).to.equal('200 AP per 1,000 characters');
    expect(english.json.pricing.note).to.match(/number of input characters/);
    const japanese = await service.post('/v1/audio/estimate', { body, headers: { 'accept-language': 'ja' } });
    expect(japanese.json.pricing.rate).to.equal('1,000 文字あたり 200 AP');
    const other = await service.post('/v1/audio/estimate', { body: { ...body, model: 'tts_v3' } });
    expect(other.json.ap_cost).to.equal(2);
  });

  it('is free when the same is said again, and made anew for anything else', async () => {
    const first = await bytesOf(await say());
    const again = await say();
    expect(Object.fromEntries(again.headers)).to.include({
      'content-type': 'audio/mpeg',
      'content-length': String(first.length),
      'x-svc-cached': 'true',
      'x-svc-ap-cost': '0',
      'x-svc-model': SPEECH_MODEL,
      'x-svc-voice': VOICE,
    });
    expect((await bytesOf(again)).equals(first)).to.equal(true);
    const generated = await service.post('/v1/tts/generate', {
      secret: caller.secret,
      body: { text: TEXT, slug: VOICE },
    });
    expect(generated.headers.get('x-svc-cached'), 'by whatever path').to.equal('true');
    const changes: Changes[] = [{ speed: 1.5 }, { voice: STUDIO_VOICE }, { response_format: 'wav' }];
    for (const change of changes)
      expect((await say(change)).headers.get('x-svc-cached'), JSON.stringify(change)).to.equal('false');
    const other = await service.makeCaller();
    const theirs = await service.post('/v1/audio/speech', {
      secret: other.secret,
      body: { input: TEXT, voice: VOICE },
    });
    expect(theirs.headers.get('x-svc-cached'), 'another account').to.equal('false');
    expectedCharges = Array<number>(4).fill(COST_AP);
  });

  it('is given again, free, under the same Idempotency-Key; another text conflicts', async () => {
    const options = { headers: { 'Idempotency-Key': 'once' } };
    const first = await say({}, options);
    const audio = await bytesOf(first);
    const again = await say({}, options);
    expect(Object.fromEntries(again.headers)).to.include({
      'idempotency-replayed': 'true',
      'content-type': 'audio/mpeg',
      'x-svc-ap-cost': '0',
      'x-svc-voice': VOICE,
    });
    expect((await bytesOf(again)).equals(audio)).to.equal(true);
    expect((await refusalOf(say({ input: 'another' }, options))).code).to.equal('idempotency_conflict');
    expectedCharges = [COST_AP];
  });

  it('can be fetched again, in parts too, by its caller alone', async () => {
    const response = await say();
    const audio = await bytesOf(response);
    const id = response.headers.get('x-svc-request-id') ?? '';
    const { json } = await service.get(`/v1/requests/${id}`, caller);
    expect(json).to.include({ status: 'succeeded', area: 'tts', ap_cost: COST_AP });
    expect(json.usage).to.include({ characters: TEXT.length });
    const fetchPart = (headers: Record<string, string>, url = String(json.result.url)) =>
      fetch(url, { headers: { authorization: `Bearer ${caller.secret}`, ...headers } });
    const part = await fetchPart({ range: 'bytes=100-199' });
    expect([part.status, part.headers.get('content-range')]).to.deep.equal([
      206,
      `bytes 100-199/${audio.length}`,
    ]);
    expect((await bytesOf(part)).equals(audio.subarray(100, 200))).to.equal(true);
    const stranger = await service.makeCaller();
    expect((await service.get(`/v1/tts/file/${id}`, stranger)).status).to.equal(404);
    const noScope = await service.makeCaller({ scopes: ['llm'] });
    expect((await service.get(`/v1/tts/file/${id}`, noScope)).json.required_scope).to.equal('tts');
    expectedCharges = [COST_AP];
  });

  it('lists its voices and its prices', async () => {
    for (const path of ['/v1/audio/voices', '/v1/tts/voices']) {
      const { json } = await service.get(path, caller);
      expect(json.voices).to.deep.include({
        id: VOICE,
        name: 'Narrator',
        tagline: 'calm',
        provider: 'sandbox',
      });
      expect(json.voices.map(({ id }: { id: string }) => id)).to.include(STUDIO_VOICE);
    }
    const models = await client.models.list();
    const priced = Object.fromEntries(
      models.data.map((model) => [model.id, (model as unknown as { pricing: unknown }).pricing]),
    );
    expect(priced[SPEECH_MODEL]).to.deep.equal({ unit: 'per_1k_characters', ap: 200 });
    expect(priced.tts_v3).to.deep.equal({ unit: 'per_1k_characters', ap: 300 });
  });

  it('of a test key comes from the sandbox, and is nobody else’s to hear', async () => {
    const { secret } = await service.makeCaller({ prefix: 'svc_test_' });
    const body = { input: TEXT, voice: 'mocked' };
    const tested = await service.post('/v1/audio/speech', { secret, body });
    expect(tested.status).to.equal(200);
  });
});
