/**
 * The images wire format of the mock upstream: pictures that are ready before the answer is timed, in as many as were asked for.
 * They are drawn when the first request for a size comes.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { FORMATS, type Format, IMAGE_MODELS, IMAGES_PER_REQUEST, LARGE_SIZE, NOISE_BLUR } from './wire.ts';

/** Of a body, which may be a form: its fields come first, then the pictures, which nobody looks at. */
const READ_CHARACTERS = 8192;
const CREATED_SECONDS = 1_700_000_000;

const answers = new Map<string, Promise<Buffer>>();

async function draw(size: string, count: number, format: Format): Promise<Buffer> {
  const { makeNoise } = await import('./pictures.ts'); // a run without pictures does not load sharp
  const [width = 0, height = 0] = size.split('x').map(Number);
  const data: { b64_json: string }[] = [];
  while (data.length < count) {
    const picture = await makeNoise(width, height, size === LARGE_SIZE ? 0 : NOISE_BLUR, format);
    data.push({ b64_json: picture.toString('base64') });
  }
  return Buffer.from(JSON.stringify({ created: CREATED_SECONDS, data }));
}

/** A field of a JSON body or a form. */
function field(text: string, name: string): string | undefined {
  return new RegExp(`"${name}"(?::"?|\\r\\n\\r\\n)([^"\\r,}]+)`).exec(text)?.[1];
}

async function reply(response: ServerResponse, text: string): Promise<void> {
  const size = field(text, 'size') ?? '';
  const count = Number(field(text, 'n') ?? 1);
  if (!/^\d+x\d+$/.test(size) || !(count <= IMAGES_PER_REQUEST)) throw new Error(`unreadable: ${text}`);
  // «stubborn» is a server that knows no other format than PNG
  const isStubborn = field(text, 'model') === IMAGE_MODELS.stubborn;
  const wanted = isStubborn ? 'png' : field(text, 'output_format');
  const format = FORMATS.find((known) => known === wanted) ?? 'png';
  const name = `${size} ${count} ${format}`;
  const drawing = answers.get(name) ?? draw(size, count, format);
  answers.set(name, drawing);
  const body = await drawing;
  await sleep(Number(/-(\d+)ms$/.exec(field(text, 'model') ?? '')?.[1] ?? 0));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
}

export function answerImages(request: IncomingMessage, response: ServerResponse): void {
  let text = '';
  request.on('data', (part: Buffer) => {
    if (text.length < READ_CHARACTERS) text += part.toString('latin1', 0, READ_CHARACTERS - text.length);
  });
  request.on('end', () => {
    reply(response, text).catch((error: unknown) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: String(error) } }));
    });
  });
}
