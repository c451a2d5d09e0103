/** Transcriptions as users meet them: what the sandbox said, read back in every format, and paid by what the recording really lasts. */
import { expect } from 'chai';
import { afterEach, before, beforeEach, describe, it } from 'mocha';
import OpenAI, { toFile } from 'openai';
import type { TranscriptionVerbose } from 'openai/resources/audio';
import { numberedMp3 } from '../helpers/audio.ts';
import { floodBody, SOCKET_BUFFERS_BYTES } from '../helpers/flood.ts';
import { BOUNDARY, FORM_HEADERS, form } from '../helpers/form.ts';
import { makePng } from '../helpers/pictures.ts';
import { eventually, type TestCaller, withTestService } from '../helpers/service.ts';
import {
  MOCKED_TRANSCRIPTION,
  makeSpeechModels,
  SPEECH_MODEL,
  TRANSCRIPTION_MODEL,
  VOICE,
} from '../helpers/speech-models.ts';
import { makeWav } from '../helpers/wav.ts';
import { ONCE, refusalOf } from './openai-client.ts';

const MAX_FILE_BYTES = 25 * 1024 * 1024;
const TEXT = 'The quick brown fox jumps over the lazy dog.';
const CUE_TIME = String.raw`\d\d:\d\d:\d\d[.,]\d{3} --> \d\d:\d\d:\d\d[.,]\d{3}`;

describe('transcriptions with the official client', () => {
  const service = withTestService();
  let caller: TestCaller;
  let client: OpenAI;
  let spoken: Buffer;

  before('models that speak and listen, and something said', async () => {
    await makeSpeechModels(service);
    const speaker = await service.makeCaller();
    const speech = new OpenAI({ baseURL: `${service.urls[0]}/v1`, apiKey: speaker.secret, ...ONCE });
    const response = await speech.audio.speech.create({ model: SPEECH_MODEL, voice: VOICE, input: TEXT });
    spoken = Buffer.from(await response.arrayBuffer());
  });
  beforeEach(async () => {
    caller = await service.makeCaller();
    client = new OpenAI({ baseURL: `${service.urls[0]}/v1`, apiKey: caller.secret, ...ONCE });
  });
  afterEach(() => service.upstream.reset());

  const hear = async <Format extends OpenAI.AudioResponseFormat>(format: Format, changes: object = {}) =>
    client.audio.transcriptions.create({
      file: await toFile(spoken, 'speech.mp3'),
      model: TRANSCRIPTION_MODEL,
      response_format: format,
      ...changes,
    });
  const charges = () => service.chargesOf(caller.accountId);

  it('read back what was said, as JSON', async () => {
    const file = await toFile(spoken, 'speech.mp3');
    const { data, response } = await client.audio.transcriptions
      .create({ file, model: TRANSCRIPTION_MODEL })
      .withResponse();
    expect(data.text).to.equal(TEXT);
    expect(data).to.include({ model: TRANSCRIPTION_MODEL });
    expect(response.headers.get('x-svc-ap-cost')).to.equal('3');
    expect(response.headers.get('x-svc-model')).to.equal(TRANSCRIPTION_MODEL);
    expect(await charges()).to.deep.equal([3]);
  });

  it('come as plain text, as subtitles of both kinds, and with times', async () => {
    expect(await hear('text')).to.equal(TEXT);
    expect(await hear('srt')).to.match(new RegExp(`^1\n${CUE_TIME}\n.+\n`));
    expect(await hear('vtt')).to.match(new RegExp(`^WEBVTT\n\n${CUE_TIME}\n.+\n`));
    const verbose = (await hear('verbose_json')) as unknown as TranscriptionVerbose;
    expect(verbose.text).to.equal(TEXT);
    expect(verbose.duration).to.be.within(1.5, 6);
    expect(verbose.language).to.be.a('string');
    expect(verbose.segments?.map(({ text }) => text.trim()).join(' ')).to.equal(TEXT);
    expect(verbose).to.not.have.property('words');
    const words = (await hear('verbose_json', {
      timestamp_granularities: ['word'],
    })) as unknown as TranscriptionVerbose;
    expect(words.words?.map(({ word }) => word.trim()).join(' ')).to.equal(TEXT.replace('.', ''));
    expect(words).to.not.have.property('segments');
    expect(await charges()).to.deep.equal([3, 3, 3, 3, 3]);
  });

  it('of a provider that tells no times are one cue, and its peculiar text hurts no format', async () => {
    const text = 'first\n\n1 --> <b>2</b> & more';
    const untimed = { content: text, extra: { segments: undefined } };
    service.upstream.programNext(untimed, untimed);
    const heard = { model: MOCKED_TRANSCRIPTION, file: await toFile(makeWav(12_345), 'a.wav') };
    expect(await hear('srt', heard)).to.equal(
      '1\n00:00:00,000 --> 00:00:12,345\nfirst\n1 --> <b>2</b> & more\n',
    );
    expect(await hear('vtt', heard)).to.equal(
      'WEBVTT\n\n00:00:00.000 --> 00:00:12.345\nfirst\n1 --&gt; &lt;b&gt;2&lt;/b&gt; &amp; more\n',
    );
    expect(await charges()).to.deep.equal([6, 6]);
  });

  const lengths: readonly (readonly [string, Buffer, number])[] = [
    ['a moment', makeWav(20), 3],
    ['ten seconds', makeWav(10_000), 3],
    ['a little more than ten seconds', makeWav(10_050), 6],
    ['a minute', makeWav(60_000), 18],
    ['12 seconds under a header that says one', makeWav(12_000, 48_000), 6],
    ['12 seconds under a header that says an hour', makeWav(12_000, 3600 * 48_000), 6],
    ['21 seconds of frames without a header', numberedMp3(804), 9],
  ];
  for (const [what, audio, costAp] of lengths) {
    it(`cost by each started ten seconds: ${what}`, async () => {
      const { response } = await client.audio.transcriptions
        .create({ file: await toFile(audio, 'audio.bin'), model: MOCKED_TRANSCRIPTION })
        .withResponse();
      expect(response.headers.get('x-svc-ap-cost')).to.equal(String(costAp));
      expect(await charges()).to.deep.equal([costAp]);
    });
  }

  it('go to the provider byte for byte, under a name of ours, with what was asked', async () => {
    const audio = makeWav(500);
    await client.audio.transcriptions.create({
      file: await toFile(audio, '../../etc/passwd.mp3'),
      model: MOCKED_TRANSCRIPTION,
      language: 'en',
      prompt: 'about foxes',
      temperature: 0.2,
    });
    const call = service.upstream.calls[0];
    expect(call?.body).to.include({ language: 'en', prompt: 'about foxes', temperature: '0.2' });
    const sent = call?.files?.[0];
    expect([sent?.name, sent?.type, sent?.bytes.equals(audio)]).to.deep.equal([
      'audio.wav',
      'audio/wav',
      true,
    ]);
    // what the caller sent goes with the request
    await eventually(async () => {
      const { rows } = await service.pool.query(
        `select from app.assets where account_id = $1 and kind = 'input' and purged_at is null`,
        [caller.accountId],
      );
      expect(rows).to.have.length(0);
    });
  });

  it('cost nothing when the provider fails', async () => {
    service.upstream.programNext({ status: 503 }, { status: 503 });
    const file = await toFile(makeWav(500), 'a.wav');
    const refusal = await refusalOf(
      client.audio.transcriptions.create({ file, model: MOCKED_TRANSCRIPTION }),
    );
    expect([refusal.status, refusal.code]).to.deep.equal([503, 'generation_failed']);
    expect(await charges()).to.deep.equal([]);
  });

  it('are given again under the same Idempotency-Key, and collected by id', async () => {
    const headers = { ...FORM_HEADERS, 'idempotency-key': 'once' };
    const body = form({ model: TRANSCRIPTION_MODEL, response_format: 'text' }, { file: spoken });
    const call = () => service.post('/v1/tts/transcriptions', { secret: caller.secret, body, headers });
    const first = await call();
    const again = await call();
    expect([first.text, again.text]).to.deep.equal([TEXT, TEXT]);
    expect(first.headers.get('content-type')).to.equal('text/plain; charset=utf-8');
    expect(again.headers.get('idempotency-replayed')).to.equal('true');
    const { json } = await service.get(`/v1/requests/${first.headers.get('x-svc-request-id')}`, caller);
    expect(json.result).to.equal(TEXT);
    expect(await charges()).to.deep.equal([3]);
  });

  it('of a picture called .mp3 are refused, whatever its name and type say', async () => {
    const file = await toFile(makePng(8, 8), 'speech.mp3', { type: 'audio/mpeg' });
    const refusal = await refusalOf(client.audio.transcriptions.create({ file, model: TRANSCRIPTION_MODEL }));
    expect([refusal.status, refusal.code]).to.deep.equal([400, 'unsupported_format']);
  });

  it('of 26 MB are refused while they arrive, and the rest is not read', async () => {
    const before = await service.traces();
    const headers = [
      `Authorization: Bearer ${caller.secret}`,
      `Content-Type: ${FORM_HEADERS['content-type']}`,
      'Transfer-Encoding: chunked',
    ];
    const begin = Buffer.from(
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.mp3"\r\n\r\n`,
    );
    const flood = (limits: object) =>
      floodBody(service.urls[0] ?? '', '/v1/audio/transcriptions', headers, { begin, ...limits });
    const { takenBytes } = await flood({});
    expect(takenBytes).to.be.within(MAX_FILE_BYTES, MAX_FILE_BYTES + SOCKET_BUFFERS_BYTES);
    // one who waits for the answer gets it
    const { text } = await flood({ maxSentBytes: MAX_FILE_BYTES + 64 * 1024 });
    expect(text).to.match(/^HTTP\/1\.1 400 /);
    expect(text).to.include(`"param":"file","max_bytes":${MAX_FILE_BYTES}`);
    expect(await service.traces()).to.deep.equal(before);
    const file = await toFile(Buffer.alloc(26 * 1024 * 1024), 'a.mp3');
    const refusal = await refusalOf(client.audio.transcriptions.create({ file, model: TRANSCRIPTION_MODEL }));
    expect([refusal.status, refusal.code]).to.deep.equal([400, 'invalid_parameter']);
  });
});
