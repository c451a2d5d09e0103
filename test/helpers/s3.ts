/**
 * An S3 server for tests: s3rver in a process of its own, on loopback and an ephemeral port, with one bucket in a folder that goes
 * with it. Its credentials are put into this process's environment, where the SDK looks for them.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TestS3 {
  readonly port: number;
  /** What ASSET_STORE takes; `prefix` within the bucket. `through`: the port of a proxy in front. */
  address(prefix: string, through?: number): string;
  stop(): Promise<void>;
}

const BUCKET = 'assets';
const CLI = `
  import(${JSON.stringify(import.meta.resolve('@20minutes/s3rver/lib/cli.js'))})
    .then(({ default: cli }) => cli.parseAsync())
    .catch((error) => { console.error(error); process.exit(1); });
`;
const LISTENING = /listening on \S+?:(\d+)/;

export async function startS3(): Promise<TestS3> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-s3-'));
  const child = spawn(
    process.execPath,
    // the first argument after -e stands where a script's name would
    [
      '-e',
      CLI,
      '--',
      's3rver',
      '-d',
      folder,
      '-a',
      '127.0.0.1',
      '-p',
      '0',
      '-s',
      '--configure-bucket',
      BUCKET,
    ],
    { cwd: join(import.meta.dirname, '..', '..'), stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const killNow = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', killNow);
  const exited = once(child, 'exit');
  let output = '';
  const port = await new Promise<string>((resolve, reject) => {
    const look = (text: Buffer): void => {
      output += text.toString();
      const found = LISTENING.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    void exited.then(() => reject(new Error(`the S3 server did not start: ${output}`)));
  });
  const before = { id: process.env.AWS_ACCESS_KEY_ID, secret: process.env.AWS_SECRET_ACCESS_KEY };
  process.env.AWS_ACCESS_KEY_ID = 'S3RVER';
  process.env.AWS_SECRET_ACCESS_KEY = 'S3RVER';
  return {
    port: Number(port),
    address: (prefix, through = Number(port)) =>
      `s3://${BUCKET}/${prefix}?endpoint=${encodeURIComponent(`http://127.0.0.1:${through}`)}&path_style=true`,
    async stop() {
      process.off('exit', killNow);
      if (before.id === undefined) delete process.env.AWS_ACCESS_KEY_ID;
      else process.env.AWS_ACCESS_KEY_ID = before.id;
      if (before.secret === undefined) delete process.env.AWS_SECRET_ACCESS_KEY;
      else process.env.AWS_SECRET_ACCESS_KEY = before.secret;
      child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
