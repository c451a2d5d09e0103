/**
 * The ingress as a list: middleware in order, then routes. Construction only; listening is in `server.ts`.
 */
import Router, { type RouterMiddleware } from '@koa/router';
import Koa from 'koa';
import { ServiceError } from '../core/errors.ts';
import type { Handler, Middleware, State } from './context.ts';
import { accountMaySpend, authenticate } from './middleware/authenticate.ts';
import { errors } from './middleware/errors.ts';
import { language } from './middleware/language.ts';
import { countRate, refuseOverRate } from './middleware/rate-limit.ts';
import { requestId } from './middleware/request-id.ts';
import { requireScope } from './middleware/scope.ts';
import { chatCompletions } from './routes/chat/completions.ts';
import { getCredits } from './routes/credits.ts';
import { getHealth, getHealthStats } from './routes/health.ts';
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

  const known = authenticate(services);
  const counted = countRate(services.rateLimiter);
  const keyed: Middleware[] = [known, counted, refuseOverRate];
  const paid = (scope: Parameters<typeof requireScope>[0]): Middleware[] => [
    known,
    counted,
    accountMaySpend(services),
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

  on('get', '/', [getIndex(() => endpointsOf(routers))]);
  on('get', '/health', [getHealth(services)]);
  on('get', '/health/stats', [getHealthStats(services)]);
  on('get', '/v1/models', [listModels(services)]);
  on('get', '/v1/models/:id', [getModel(services)]);
  on('get', '/v1/chat/models', [listChatModels(services)]);

  on('post', '/v1/chat/completions', [...paid('llm'), chatCompletions(services)], busiest);

  on('get', '/v1/requests', [...keyed, getRequests(services)]);
  on('get', '/v1/requests/:id', [...keyed, getRequest(services)]);
  on('post', '/v1/requests/:id/cancel', [...keyed, postCancel(services)]);
  on('get', '/v1/credits', [...keyed, getCredits(services)]);
  on('get', '/v1/key', [...keyed, getKey(services)]);

  for (const each of routers) app.use(each.routes());
  app.use(notFound(routers));
  return app;
}

/** A known path with another method: 405 with `Allow`. Anything else: 404. Both with code `not_found`. */
function notFound(routers: readonly Router<State>[]): Middleware {
  return (ctx) => {
    const methods = layersOf(routers)
      .filter((layer) => layer.match(ctx.path))
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
