/**
 * What stands before a GraphQL operation: POST, an operator, and a JSON body of bounded size. All of it is checked here, so
 * that grafserv meets well-formed requests only.
 */
import type { Context, Middleware } from 'koa';
import getRawBody from 'raw-body';
import { MAX_BODY_BYTES } from '../graphile.config.ts';
import type { Operators } from '../operators.ts';
import { Refusal } from '../refusal.ts';

export function makeGraphqlRequest(operators: Operators): Middleware {
  return async (ctx, next) => {
    ctx.url = ctx.path; // grafserv compares the whole URL, and a query string means nothing here
    if (ctx.path !== '/graphql') return await next();
    if (ctx.method !== 'POST') {
      ctx.set('allow', 'POST');
      throw new Refusal('Use POST; the page is at /.', { code: 'method_not_allowed', statusCode: 405 });
    }
    ctx.state.operator = await operators.authenticate(ctx.get('authorization') || undefined);
    (ctx.request as { body?: unknown }).body = await readJson(ctx);
    await next();
    addCodes(ctx.body);
  };
}

async function readJson(ctx: Context): Promise<object> {
  if (ctx.is('application/json') === false || ctx.is('application/json') === null) {
    throw new Refusal('Send JSON (content-type: application/json).', {
      code: 'invalid_request',
      statusCode: 415,
    });
  }
  const text = await getRawBody(ctx.req, {
    length: ctx.get('content-length') || null,
    limit: MAX_BODY_BYTES,
    encoding: 'utf8',
  }).catch((error: { status?: number }) => {
    throw new Refusal(`The body cannot be read, or has over ${MAX_BODY_BYTES} bytes.`, {
      code: 'invalid_request',
      statusCode: error.status ?? 400,
      cause: error,
    });
  });
  const body = parseJson(text);
  if (typeof body !== 'object' || body === null || Array.isArray(body) || !('query' in body)) {
    throw new Refusal('Send a JSON object with a query.', { code: 'invalid_request', statusCode: 400 });
  }
  return body;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refusal('The body is not JSON.', { code: 'invalid_request', statusCode: 400, cause: error });
  }
}

/** What graphql-js finds wrong in a query comes without a code. */
function addCodes(body: unknown): void {
  const { errors } = body as { errors?: { extensions?: Record<string, unknown> }[] };
  for (const error of errors ?? []) error.extensions = { code: 'invalid_request', ...error.extensions };
}
