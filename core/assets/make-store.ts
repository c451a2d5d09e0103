/** The store that the configuration names: a folder, or S3. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '../config.ts';
import { FolderStore } from './folder-store.ts';
import type { S3Address } from './s3-store.ts';
import type { AssetStore } from './store.ts';

const S3_OPTIONS = ['endpoint', 'region', 'path_style'];
const FORMS = 'file:///path or s3://bucket/prefix?endpoint=…&region=…&path_style=true';

/** Throws an Error that names ASSET_STORE when it is not an address of a store. */
export async function makeAssetStore(config: Pick<Config, 'assetStore' | 'dataDir'>): Promise<AssetStore> {
  const address = config.assetStore;
  if (address === undefined) return await makeFolder(path.join(config.dataDir, 'assets'));
  const url = URL.parse(address);
  if (url?.protocol === 'file:' && url.host === '') return await makeFolder(fileURLToPath(url));
  if (url?.protocol === 's3:' && url.hostname !== '' && url.password === '') {
    // the SDK costs time and memory: only where it is used
    const { S3Store } = await import('./s3-store.ts');
    return await S3Store.make(parseS3Address(url)).catch((cause: unknown) => {
      throw new Error(`ASSET_STORE cannot be used: ${(cause as Error).message}`, { cause });
    });
  }
  throw new Error(`ASSET_STORE must be ${FORMS}`);
}

/** Where web and worker are processes apart, they may be on machines apart. */
export function warningOf(
  config: Pick<Config, 'assetStore' | 'dataDir' | 'isProduction'>,
): string | undefined {
  if (!config.isProduction || config.assetStore !== undefined) return undefined;
  return 'ASSET_STORE is not set: files are kept in DATA_DIR/assets, which web and worker must share and which must outlive them';
}

async function makeFolder(root: string): Promise<AssetStore> {
  const store = new FolderStore(root);
  await store.removeLeftovers();
  return store;
}

function parseS3Address(url: URL): S3Address {
  const options = url.searchParams;
  const unknown = [...options.keys()].find((name) => !S3_OPTIONS.includes(name));
  if (unknown !== undefined) throw new Error(`ASSET_STORE has an unknown option ${unknown}: ${FORMS}`);
  const endpoint = options.get('endpoint') ?? undefined;
  if (endpoint !== undefined && !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? '')) {
    throw new Error('ASSET_STORE must name its endpoint as an http or https address');
  }
  const prefix = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '');
  return {
    bucket: url.hostname,
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint,
    region: options.get('region') ?? undefined,
    isPathStyle: options.get('path_style') === 'true',
  };
}
