/** The wire body of a chat call: the caller's, with the model, the output cap and the streaming fields overwritten. */
import type { ChatCall } from '../provider.ts';

export function chatRequestBody(call: ChatCall, stream: boolean): string {
  const body: Record<string, unknown> = { ...call.body, model: call.upstreamModel, stream };
  const usesOld = isGiven(body.max_tokens);
  if (usesOld) body.max_tokens = call.outputCapTokens;
  if (!usesOld || isGiven(body.max_completion_tokens)) body.max_completion_tokens = call.outputCapTokens;
  // Usage is always asked for, since it is what is charged; what the caller sees of it is the executor's to decide.
  if (stream)
    body.stream_options = {
      ...(body.stream_options as object | null | undefined),
      include_usage: true,
    };
  // The convention refuses stream options on a call that is not streamed.
  else delete body.stream_options;
  return JSON.stringify(body);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
