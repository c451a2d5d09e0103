/** The wire body of an image call: JSON for a generation, a form for an edit. What a caller did not ask for is not sent. */
import { type FormBody, type FormPart, type FormPartFile, makeFormBody } from '../form-body.ts';
import type { ImageCall, ImageInput } from '../provider.ts';

type Fields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Models whose answers are addresses unless asked for bytes; all others either know no such field or are read both ways. */
const ASKED_FOR_BYTES = /^dall-e-/;

export function imageRequestBody(call: ImageCall, stream: boolean): string | FormBody {
  const fields: Fields = {
    model: call.upstreamModel,
    prompt: call.prompt,
    n: call.count,
    size: call.size,
    quality: call.quality,
    background: call.background,
    // The convention's default is left out, since older servers refuse the field.
    output_format: call.outputFormat === 'png' ? undefined : call.outputFormat,
    output_compression: call.outputCompression,
    user: call.user,
    seed: call.seed,
    ...(stream ? { stream: true, partial_images: call.partialImages } : {}),
    ...(ASKED_FOR_BYTES.test(call.upstreamModel) ? { response_format: 'b64_json' } : {}),
  };
  return call.images.length === 0
    ? JSON.stringify({ ...fields, moderation: call.moderation })
    : formOf(call, { ...fields, input_fidelity: call.inputFidelity });
}

function formOf(call: ImageCall, fields: Fields): FormBody {
  const parts: FormPart[] = [];
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined) parts.push({ name, content: `${value}` });
  // As the official client does: a lone picture has the name that servers of one picture know.
  const name = call.images.length === 1 ? 'image' : 'image[]';
  for (const [index, image] of call.images.entries())
    parts.push({ name, content: fileOf(image, `image-${index}`) });
  if (call.mask !== undefined) parts.push({ name: 'mask', content: fileOf(call.mask, 'mask') });
  return makeFormBody(parts);
}

/** The name's ending matters to servers that look at nothing else. */
function fileOf(image: ImageInput, name: string): FormPartFile {
  const { contentType, byteLength } = image;
  const ending = contentType.slice('image/'.length);
  return { fileName: `${name}.${ending}`, contentType, byteLength, open: () => image.open() };
}
