/**
 * The ingress as a list: middleware in order, then routes. Construction only; listening is in `server.ts`.
 */
import Router, { type RouterMiddleware } from '@koa/router';
import Koa from 'koa';
import { ServiceError } from '../core/errors.ts';
import type { Handler, Middleware, State } from './context.ts';
import { accountMaySpend, authenticate } from './middleware/authenticate.ts';
import { errors } from './middleware/errors.ts';
import { capAddress } from './middleware/ip-daily-cap.ts';
import { language } from './middleware/language.ts';
import { countRate, refuseOverRate } from './middleware/rate-limit.ts';
import { requestId } from './middleware/request-id.ts';
import { requireScope } from './middleware/scope.ts';
import { isId } from './parameters.ts';
import { postEstimate } from './routes/audio/estimate.ts';
import { getAudioFile } from './routes/audio/file.ts';
import { postGenerate } from './routes/audio/generate.ts';
import { postSpeech } from './routes/audio/speech.ts';
import { postTranscription } from './routes/audio/transcriptions.ts';
import { listVoices } from './routes/audio/voices.ts';
import { chatCompletions } from './routes/chat/completions.ts';
import { getCredits } from './routes/credits.ts';
import { postTextToSpeech } from './routes/el/text-to-speech.ts';
import { postElTts } from './routes/el/tts.ts';
import {
  getClientVoice,
  listClientModels,
  listClientVoices,
  listElVoices,
  searchClientVoices,
} from './routes/el/voices.ts';
import { getHealth, getHealthStats } from './routes/health.ts';
import { getBeacon } from './routes/images/beacon.ts';
import { getImageCandidate } from './routes/images/candidate.ts';
import { postCertify } from './routes/images/certify.ts';
import {
  deleteCharacter,
  getCharacterImage,
  listCharacters,
  postCharacter,
} from './routes/images/characters.ts';
import { editImages } from './routes/images/edit.ts';
import { getImageFile } from './routes/images/file.ts';
import { getGallery, getGalleryFile } from './routes/images/gallery.ts';
import { generateImages } from './routes/images/generate.ts';
import { postInspect } from './routes/images/inspect.ts';
import { getLegacyCertificate } from './routes/images/legacy-cert.ts';
import { getLicense } from './routes/images/license.ts';
import { listImages } from './routes/images/list.ts';
import { listImageModels } from './routes/images/models.ts';
import { deletePublish, postPublish } from './routes/images/publish.ts';
import { removeImage } from './routes/images/remove.ts';
import { retrieveImage } from './routes/images/retrieve.ts';
import { getImageStatus } from './routes/images/status.ts';
import { getIndex } from './routes/index.ts';
import { getKey } from './routes/key.ts';
import { getModel, listChatModels, listModels } from './routes/models.ts';
import { getRequest, getRequests, postCancel } from './routes/requests.ts';
import type { Services } from './services.ts';

export function makeApp(services: Services): Koa<State> {
  const app = new Koa<State>({
    proxy: services.config.proxyCount > 0,
    maxIpsCount: services.config.proxyCount,
  });
  // a router asks each of its routes in turn: the busiest is not to wait for all the others
  const busiest = new Router<State>();
  const router = new Router<State>();
  const routers = [busiest, router];
  app.silent = true; // the funnel below has said it already

  app.use(requestId);
  app.use(language);
  app.use(errors(services.logger));

  const anyKey = authenticate(services);
  const counted = countRate(services.rateLimiter);
  const keyed: Middleware[] = [anyKey, counted, refuseOverRate];
  const paid = (scope: Parameters<typeof requireScope>[0], known = anyKey): Middleware[] => [
    known,
    counted,
    accountMaySpend(services),
    requireScope(scope),
    refuseOverRate,
  ];
  const scoped = (scope: Parameters<typeof requireScope>[0]): Middleware[] => [
    anyKey,
    counted,
    requireScope(scope),
    refuseOverRate,
  ];
  const on = (
    method: 'get' | 'post' | 'delete',
    path: string,
    handlers: readonly (Handler | Middleware)[],
    where = router,
  ): void => {
    where[method](path, ...(handlers as readonly unknown[] as RouterMiddleware<State>[]));
  };

  /** Beside paths of one more word: a word that is no id is of none of these. */
  const anId: Middleware = (ctx, next) =>
    (isId(String(ctx.params.id)) ? next() : missing(ctx, next)) as Promise<void>;
  const missing = notFound(routers);

  on('get', '/', [getIndex(() => endpointsOf(routers))]);
  on('get', '/health', [getHealth(services)]);
  on('get', '/health/stats', [getHealthStats(services)]);
  on('get', '/v1/models', [listModels(services)]);
  on('get', '/v1/models/:id', [getModel(services)]);
  on('get', '/v1/chat/models', [listChatModels(services)]);

  on('post', '/v1/chat/completions', [...paid('llm'), chatCompletions(services)], busiest);

  for (const base of ['/v1/images', '/v2.5/images']) {
    on('post', `${base}/generations`, [...paid('images'), generateImages(services)]);
    on('post', `${base}/edits`, [...paid('images'), editImages(services)]);
    on('post', `${base}/inspect`, [capAddress(services.addressCap, 'images'), postInspect(services)]);
    on('get', `${base}/gallery`, [getGallery(services)]);
    on('get', `${base}/gallery/:id`, [getGalleryFile(services)]);
    on('get', `${base}/characters`, [listCharacters(services)]);
    on('post', `${base}/characters`, [...scoped('images'), postCharacter(services)]);
    on('delete', `${base}/characters/:id`, [...scoped('images'), deleteCharacter(services)]);
    on('get', `${base}/characters/:id/image`, [getCharacterImage(services)]);
    on('get', `${base}/cert/:id`, [getLegacyCertificate(services)]);
    on('get', `${base}/license/:token`, [getLicense(services)]);
    on('get', `${base}/beacon`, [capAddress(services.addressCap, 'beacon'), getBeacon(services)]);
    on('get', `${base}/models`, [listImageModels(services)]);
    on('get', `${base}/status/:id`, [...keyed, getImageStatus(services)]);
    on('get', `${base}/file/:id`, [...scoped('images'), getImageFile(services)]);
    on('get', `${base}/candidate/:id`, [...scoped('images'), getImageCandidate(services)]);
    on('get', base, [...scoped('images'), listImages(services)]);
    on('get', `${base}/:id`, [anId, ...scoped('images'), retrieveImage(services)]);
    on('post', `${base}/:id/publish`, [...paid('images'), postPublish(services)]);
    on('delete', `${base}/:id/publish`, [...scoped('images'), deletePublish(services)]);
    on('post', `${base}/:id/certify`, [...paid('images'), postCertify(services)]);
    on('delete', `${base}/:id`, [anId, ...scoped('images'), removeImage(services)]);
  }
  on('get', '/v2.5/models', [listModels(services)]);

  for (const base of ['/v1/audio', '/v1/tts']) {
    on('post', `${base}/estimate`, [capAddress(services.addressCap, 'tts'), postEstimate(services)]);
    on('post', `${base}/generate`, [...paid('tts'), postGenerate(services)]);
    on('post', `${base}/speech`, [...paid('tts'), postSpeech(services)]);
    on('post', `${base}/transcriptions`, [...paid('tts'), postTranscription(services)]);
    on('get', `${base}/voices`, [...keyed, listVoices(services)]);
    on('get', `${base}/file/:id`, [...scoped('tts'), getAudioFile(services)]);
  }

  // the second family's client sends its key in a header of its own
  const elKey = authenticate(services, 'xi-api-key');
  const elKeyed: Middleware[] = [elKey, counted, refuseOverRate];
  on('post', '/v1/el/tts', [...paid('tts', elKey), postElTts(services)]);
  on('get', '/v1/el/voices', [...elKeyed, listElVoices(services)]);
  for (const path of ['/v1/el/v1/text-to-speech/:voice', '/v1/el/v1/text-to-speech/:voice/stream'])
    on('post', path, [...paid('tts', elKey), postTextToSpeech(services)]);
  on('get', '/v1/el/v1/voices', [...elKeyed, listClientVoices(services)]);
  on('get', '/v1/el/v1/voices/:voice', [...elKeyed, getClientVoice(services)]);
  on('get', '/v1/el/v2/voices', [...elKeyed, searchClientVoices(services)]);
  on('get', '/v1/el/v1/models', [...elKeyed, listClientModels(services)]);

  on('get', '/v1/requests', [...keyed, getRequests(services)]);
  on('get', '/v1/requests/:id', [...keyed, getRequest(services)]);
  on('post', '/v1/requests/:id/cancel', [...keyed, postCancel(services)]);
  on('get', '/v1/credits', [...keyed, getCredits(services)]);
  on('get', '/v1/key', [...keyed, getKey(services)]);

  for (const each of routers) app.use(each.routes());
  app.use(missing);
  return app;
}

/** Its paths are those of ids alone. */
const IS_IMAGE = /\/images\/:id$/;

function lastWord(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A known path with another method: 405 with `Allow`. Anything else: 404. Both with code `not_found`. */
function notFound(routers: readonly Router<State>[]): Middleware {
  return (ctx) => {
    const methods = layersOf(routers)
      .filter(
        (layer) => layer.match(ctx.path) && (!IS_IMAGE.test(String(layer.path)) || isId(lastWord(ctx.path))),
      )
      .flatMap((layer) => layer.methods);
    if (methods.length === 0) throw new ServiceError('not_found');
    ctx.set('Allow', [...new Set(methods)].join(', '));
    throw new ServiceError('not_found', {}, { status: 405 });
  };
}

function layersOf(routers: readonly Router<State>[]): Router<State>['stack'] {
  return routers.flatMap((router) => router.stack);
}

function endpointsOf(routers: readonly Router<State>[]): string[] {
  return layersOf(routers).flatMap((layer) =>
    layer.methods
      .filter((method) => method !== 'HEAD')
      .map((method) => `${method} ${String(layer.path).replace(/:(\w+)/g, '{$1}')}`),
  );
}
