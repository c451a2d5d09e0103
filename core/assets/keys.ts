/**
 * Where a file lies in the store: its key follows from its row (kind, id, content type), so nothing needs to remember it. Also
 * which keys a store takes at all.
 */

export type AssetKind = 'image' | 'audio' | 'video' | 'input' | 'partial' | 'character' | 'preview';

export interface AssetName {
  /** UUID version 7. */
  readonly id: string;
  readonly kind: AssetKind;
  readonly contentType: string;
}

/** Every type of file the service keeps. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/ogg': 'ogg',
  'audio/opus': 'opus',
  'audio/flac': 'flac',
  'audio/aac': 'aac',
  'audio/pcm': 'pcm',
  'audio/mp4': 'm4a',
  'audio/webm': 'weba',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'application/octet-stream': 'bin',
};

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** Folders and a name, none of which begins with a dot: no way out of a folder, no hidden files. */
const KEY = /^[a-z0-9][a-z0-9._-]*(?:\/[a-z0-9][a-z0-9._-]*)*$/;
const MAX_KEY_LENGTH = 255;

/** The ending of file names of this type, without a dot. Throws on a type that the service does not keep. */
export function extensionOf(contentType: string): string {
  const extension = Object.hasOwn(EXTENSIONS, contentType) ? EXTENSIONS[contentType] : undefined;
  if (extension === undefined) throw new Error(`no files of type ${contentType} are kept`);
  return extension;
}

/** `<kind>/<yyyy>/<mm>/<dd>/<id>.<extension>`: the day is that of the id. */
export function assetKey({ id, kind, contentType }: AssetName): string {
  if (!UUID_V7.test(id)) throw new Error(`the id of an asset is a UUID version 7, not ${id}`);
  const day = new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)).toISOString().slice(0, 10);
  return `${kind}/${day.replaceAll('-', '/')}/${id}.${extensionOf(contentType)}`;
}

/** Throws on a key that no store takes: one that could leave its folder, or name what a store keeps for itself. */
export function requireKey(key: string): void {
  if (key.length > MAX_KEY_LENGTH || !KEY.test(key)) throw new Error(`not a key: ${JSON.stringify(key)}`);
}
