/** GET /: where everything is. */
import type { Handler } from '../context.ts';
import { answerPublicRead } from '../public-read.ts';

const MAX_AGE_SECONDS = 300;

/** `endpoints`: "METHOD /path" lines of the router itself, so that the index cannot promise what is not there. */
export function getIndex(endpoints: () => readonly string[]): Handler {
  return (ctx) => {
    answerPublicRead(
      ctx,
      {
        name: 'svc',
        version: '1.0.0',
        description: 'One key, one prepaid balance, every AI service behind one HTTP API.',
        authentication: 'Authorization: Bearer <API_KEY>',
        currency: { unit: 'AP', ap_per_usd: 10_000 },
        endpoints: endpoints(),
      },
      MAX_AGE_SECONDS,
    );
  };
}
