/** Models and voices for tests: those of the sandbox catalogue, and one of the mock upstream. */
import { expect } from 'chai';
import { importCatalogue } from '../../core/catalogue-file/index.ts';
import { eventually, type TestService } from './service.ts';

export const SPEECH_MODEL = 'speech-sandbox';
export const VOICE = 'narrator';
/** Of a provider that neither model of the second family is routed to. */
export const STUDIO_VOICE = 'announcer';
export const TRANSCRIPTION_MODEL = 'transcription-sandbox';
/** Spoken and transcribed by the mock upstream. */
export const MOCKED_MODEL = 'speech-mocked';
export const MOCKED_VOICE = 'mocked';
export const MOCKED_TRANSCRIPTION = 'transcription-mocked';

const CATALOGUE = `
providers:
  - {name: sandbox, kind: sandbox}
  - {name: studio, kind: sandbox}
models:
  - id: ${SPEECH_MODEL}
    type: speech
    recommended: true
    routes: [{provider: sandbox, upstream_model: s}, {provider: studio, upstream_model: s}]
    pricing: {ap: 200}
  - {id: tts_multilingual_v2, type: speech, routes: [{provider: sandbox, upstream_model: m}], pricing: {ap: 200}}
  - {id: tts_v3, type: speech, routes: [{provider: sandbox, upstream_model: v}], pricing: {ap: 300}}
  - {id: ${MOCKED_MODEL}, type: speech, routes: [{provider: mock, upstream_model: up}], pricing: {ap: 200}}
  - id: ${TRANSCRIPTION_MODEL}
    type: transcription
    recommended: true
    routes: [{provider: sandbox, upstream_model: t}]
    pricing: {ap: 3}
  - {id: ${MOCKED_TRANSCRIPTION}, type: transcription, routes: [{provider: mock, upstream_model: up}], pricing: {ap: 3}}
voices:
  - {slug: ${VOICE}, name: Narrator, tagline: calm, provider: sandbox, upstream_voice: n, model: ${SPEECH_MODEL}}
  - {slug: storyteller, name: Storyteller, tagline: warm, provider: sandbox, upstream_voice: t, model: tts_v3}
  - {slug: ${STUDIO_VOICE}, name: Announcer, provider: studio, upstream_voice: a, model: ${SPEECH_MODEL}}
  - {slug: ${MOCKED_VOICE}, name: Mocked, provider: mock, upstream_voice: alloy, model: ${MOCKED_MODEL}}
`;

/** Resolves once every ingress offers them. */
export async function makeSpeechModels(service: Pick<TestService, 'pool' | 'get' | 'urls'>): Promise<void> {
  await importCatalogue(service.pool, CATALOGUE, 'speech-models.yaml', 'test');
  for (const web of service.urls.keys()) {
    await eventually(async () => {
      const { status } = await service.get(`/v1/models/${MOCKED_TRANSCRIPTION}`, { web });
      expect(status).to.equal(200);
    });
  }
}
