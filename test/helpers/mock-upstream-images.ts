/**
 * How the mock upstream answers a call for pictures: plain PNGs of the asked size, each position in a colour of its own, in the
 * wire format of the convention. Used only by the mock's other files.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type MockBehaviour, type MockCall, type MockFile, sendJson, write } from './mock-upstream-wire.ts';
import { makePng } from './pictures.ts';

const USAGE = {
  input_tokens: 12,
  output_tokens: 196,
  total_tokens: 208,
  input_tokens_details: { text_tokens: 12, image_tokens: 0 },
};
const COLOURS: readonly [number, number, number][] = [
  [200, 40, 40],
  [40, 160, 60],
  [40, 80, 200],
  [220, 180, 30],
];

/** The picture of a position; partial ones are darker. */
export function pictureOf(size: string, index: number, darkness = 1): Buffer {
  const [width = 8, height = 8] = size.split('x').map(Number);
  const [red, green, blue] = COLOURS[index % COLOURS.length] ?? [0, 0, 0];
  return makePng(width, height, { rgb: [red / darkness, green / darkness, blue / darkness] });
}

export async function readForm(
  contentType: string,
  bytes: Buffer,
): Promise<{ body: Record<string, unknown>; files: MockFile[] }> {
  const form = await new Response(new Uint8Array(bytes), {
    headers: { 'content-type': contentType },
  }).formData();
  const body: Record<string, unknown> = {};
  const files: MockFile[] = [];
  for (const [field, value] of form.entries()) {
    // A name that comes again is a list.
    if (typeof value === 'string') body[field] = field in body ? [body[field], value].flat() : value;
    else
      files.push({
        field,
        name: value.name,
        type: value.type,
        bytes: Buffer.from(await value.arrayBuffer()),
      });
  }
  return { body, files };
}

/** A form has only text: its numbers and truths are read as the convention's servers do. */
export async function answerImages(
  call: MockCall,
  response: ServerResponse,
  behaviour: MockBehaviour,
): Promise<void> {
  if (String(call.body.stream) === 'true') return writeImageStream(call, response, behaviour);
  const data = Array.from({ length: countOf(call, behaviour) }, (_, index) => itemOf(call, behaviour, index));
  return sendJson(
    response,
    200,
    { created: 1_760_000_000, data, ...usageField(behaviour), ...behaviour.extra },
    behaviour,
  );
}

function itemOf(call: MockCall, { images = {} }: MockBehaviour, index: number): Record<string, unknown> {
  const size = images.size ?? String(call.body.size);
  const host = call.headers.host ?? '';
  return {
    ...(images.url === undefined
      ? { b64_json: images.b64 === undefined ? pictureOf(size, index).toString('base64') : images.b64 }
      : { url: images.url === 'own' ? `http://${host}/v1/files/${index}-${size}.png` : images.url }),
    ...(images.revisedPrompt === undefined ? {} : { revised_prompt: images.revisedPrompt }),
  };
}

async function writeImageStream(
  call: MockCall,
  response: ServerResponse,
  behaviour: MockBehaviour,
): Promise<void> {
  response.writeHead(200, {
    'content-type': behaviour.contentType ?? 'text/event-stream; charset=utf-8',
    ...behaviour.headers,
  });
  const kind = call.path.startsWith('/v1/images/edits') ? 'image_edit' : 'image_generation';
  const events: Record<string, unknown>[] = [];
  const { images = {} } = behaviour;
  const size = images.size ?? String(call.body.size);
  for (let index = 0; index < countOf(call, behaviour); index += 1) {
    const partials = Number(call.body.partial_images ?? 0);
    for (let partial = 0; partial < partials; partial += 1)
      events.push({
        type: `${kind}.partial_image`,
        partial_image_index: partial,
        b64_json: images.b64 ?? pictureOf(size, index, partials + 1 - partial).toString('base64'),
      });
    events.push({ type: `${kind}.completed`, ...itemOf(call, behaviour, index), ...usageField(behaviour) });
  }
  for (let written = 0; ; written += 1) {
    if (behaviour.hang === written) return;
    if (behaviour.reset === written) return void response.socket?.resetAndDestroy();
    if (behaviour.cutAfterChunks === written) return void response.end();
    if (behaviour.errorEvent?.afterChunks === written) {
      const error = { type: 'error', error: behaviour.errorEvent.error };
      await write(call, response, `event: error\ndata: ${JSON.stringify(error)}\n\n`);
      return void response.end();
    }
    const event = events[written];
    if (event === undefined) break;
    if (written > 0 && behaviour.chunkSpacingMs !== undefined) await delay(behaviour.chunkSpacingMs);
    if (written > 0) await behaviour.chunkGate?.(written);
    const fields = { created_at: 1_760_000_000, output_format: 'png', size, ...event, ...behaviour.extra };
    await write(call, response, `event: ${String(event.type)}\ndata: ${JSON.stringify(fields)}\n\n`);
  }
  if (behaviour.omitDone === false) await write(call, response, 'data: [DONE]\n\n');
  response.end();
}

function countOf(call: MockCall, { images }: MockBehaviour): number {
  return images?.count ?? Number(call.body.n ?? 1);
}

function usageField({ usage = USAGE }: MockBehaviour): Record<string, unknown> {
  return usage === 'missing' ? {} : { usage };
}
