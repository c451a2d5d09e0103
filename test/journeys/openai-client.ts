/** The official client as a caller of ours: only `baseURL` and `apiKey` are changed. */
import OpenAI from 'openai';
import type { TestCaller, TestService } from '../helpers/service.ts';

export function makeClient(
  service: Pick<TestService, 'urls'>,
  { secret }: Pick<TestCaller, 'secret'>,
  web = 0,
): OpenAI {
  return new OpenAI({ baseURL: `${service.urls[web]}/v1`, apiKey: secret });
}

/** What a call is refused with; the client does not try again by itself. */
export async function refusalOf(call: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  try {
    await call;
  } catch (error) {
    if (error instanceof OpenAI.APIError) return error as InstanceType<typeof OpenAI.APIError>;
    throw error;
  }
  throw new Error('the call was not refused');
}

export const ONCE = { maxRetries: 0 } as const;
