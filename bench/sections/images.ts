/**
 * Pictures: what a request costs of our own CPU beside sharp's single encoding of the same pictures, the memory that 50 edits at
 * once take and how late the event loops are meanwhile, and downloads by readers that take nothing for a while.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BenchContext, NOT_OURS, ourTarget, type Section } from '../context.ts';
import type { EncodingMs } from '../encode-pictures.ts';
import { closeConnections, jsonBody, openDownload, send } from '../image-client.ts';
import { CHATS_PER_SECOND, EDITS, type EditRun, type LoopDelay, runEdits } from '../image-edits.ts';
import { makeNoise } from '../pictures.ts';
import { cpuMs, residentMegabytes } from '../proc-stat.ts';
import { forkModule } from '../processes.ts';
import { atMost, format, type Goal, type SectionReport, type Table } from '../report.ts';
import type { Service } from '../service.ts';
import {
  EDIT_SIZE,
  FORMATS,
  type Format,
  IMAGE_MODELS,
  IMAGE_SIDE,
  IMAGES_PER_REQUEST,
  LARGE_SIZE,
} from '../wire.ts';

const OWN_PROCESSES = ['ingress', 'worker', 'postgres', 'redis'];
const WARM_UP_REQUESTS = 5;
const TIMED_REQUESTS = 20;
const MAX_OWN_CPU_MS = 150;

const MAX_MEGABYTES = 400;
const MAX_LOOP_DELAY_P99_MS = 100;

const DOWNLOADS = 20;
const HELD_MS = 3000;
const SAMPLE_MS = 50;
/** Of the ingress, for the buffers of sockets and files of all readers together. */
const MAX_DOWNLOAD_MEGABYTES = 100;
const BYTES_PER_MEGABYTE = 1_048_576;

interface Part {
  readonly table: Table;
  readonly goals: readonly Goal[];
}

async function generate(service: Service, index: number, fields: Record<string, unknown>): Promise<string> {
  const body = jsonBody({
    model: IMAGE_MODELS.instant,
    prompt: `A harbour at dawn, number ${index}`,
    quality: 'low',
    cache: false,
    ...fields,
  });
  const key = service.hotKey;
  const answer = await send(service, { path: '/v1/images/generations', key, ...body });
  return answer.generationId;
}

function ownCpu(context: BenchContext): Map<string, number> {
  const watched = [...context.watched()].filter(([name]) => OWN_PROCESSES.includes(name));
  return new Map(watched.map(([name, pid]) => [name, cpuMs(pid)]));
}

/** CPU milliseconds of one request of four pictures, by process. */
async function cpuOfRequests(
  context: BenchContext,
  service: Service,
  { model, format }: { model: string; format: Format },
): Promise<Map<string, number>> {
  const size = `${IMAGE_SIDE}x${IMAGE_SIDE}`;
  const fields = { model, n: IMAGES_PER_REQUEST, size, output_format: format };
  for (let index = 0; index < WARM_UP_REQUESTS; index += 1) await generate(service, index, fields);
  const before = ownCpu(context);
  for (let index = 0; index < TIMED_REQUESTS; index += 1) await generate(service, index, fields);
  const after = ownCpu(context);
  return new Map([...after].map(([name, ms]) => [name, (ms - (before.get(name) ?? 0)) / TIMED_REQUESTS]));
}

async function measureCpu(context: BenchContext, service: Service): Promise<Part> {
  context.say('CPU of requests for four pictures');
  const modulePath = new URL('../encode-pictures.ts', import.meta.url);
  const { directory } = context;
  const encoder = await forkModule({ name: 'encode-pictures', modulePath, args: [], directory });
  const encoding = encoder.firstMessage as EncodingMs;
  const goals: Goal[] = [];
  const rows: string[][] = [];
  const cases = [
    ...FORMATS.map((format) => ({
      name: `${format}`,
      model: IMAGE_MODELS.instant,
      format,
      from: 'pixels' as const,
    })),
    {
      name: 'jpeg, upstream sends png',
      model: IMAGE_MODELS.stubborn,
      format: 'jpeg' as const,
      from: 'png' as const,
    },
    {
      name: 'webp, upstream sends png',
      model: IMAGE_MODELS.stubborn,
      format: 'webp' as const,
      from: 'png' as const,
    },
  ];
  for (const one of cases) {
    const byProcess = await cpuOfRequests(context, service, one);
    const own = byProcess.values().reduce((sum, ms) => sum + ms, 0);
    const encodingOnce = encoding[one.from][one.format];
    const beyond = own - encodingOnce;
    const of = (name: string) => format(byProcess.get(name));
    rows.push([
      one.name,
      ...OWN_PROCESSES.map(of),
      format(own, 'ms'),
      format(encodingOnce, 'ms'),
      format(beyond, 'ms'),
    ]);
    goals.push(
      atMost(`four pictures, ${one.name}: own CPU beyond one encoding`, beyond, MAX_OWN_CPU_MS, 'ms'),
    );
  }
  return {
    table: {
      title: `CPU ms of a request for ${IMAGES_PER_REQUEST} pictures of ${IMAGE_SIDE}×${IMAGE_SIDE}, answered with base64 (as PNG 2 MB each)`,
      columns: ['asked for', ...OWN_PROCESSES, 'ours together', 'sharp, encoding them once', 'beyond'],
      rows,
    },
    goals,
  };
}

function describeDelay(delay: LoopDelay | undefined): string {
  return `${format(delay?.p50Ms)} / ${format(delay?.p99Ms)} / ${format(delay?.maxMs)}`;
}

async function measureEdits(context: BenchContext, service: Service): Promise<Part> {
  const [width = 0, height = 0] = EDIT_SIZE.split('x').map(Number);
  const picture = await makeNoise(width, height, 0);
  const runs: EditRun[] = [];
  for (const kind of ['none', 'multipart', 'JSON'] as const) {
    runs.push(await runEdits(context, service, kind, picture));
  }
  const goals = runs.slice(1).flatMap((run) =>
    [...run.peaks].flatMap(([name, megabytes]) => {
      const delay = run.delays.get(name)?.p99Ms;
      return [
        atMost(`${run.label}: peak memory of ${name}`, megabytes, MAX_MEGABYTES, 'MB'),
        atMost(`${run.label}: event loop delay of ${name}, p99`, delay, MAX_LOOP_DELAY_P99_MS, 'ms'),
      ];
    }),
  );
  return {
    table: {
      title: `${EDITS} edits at once, each with a picture of ${format(picture.length / BYTES_PER_MEGABYTE, 'MB')}, upstream answering after 1 s; beside them ${CHATS_PER_SECOND} chat requests a second`,
      columns: [
        '',
        'all answered after',
        'peak MB of ingress',
        'of worker',
        'loop delay of ingress, ms (p50 / p99 / max)',
        'of worker',
        'chat, ms (p50 / p99)',
        'CPU s of ingress',
        'of worker',
      ],
      rows: runs.map(({ label, seconds, peaks, delays, chat, cpuMs: used }) => [
        label,
        label === 'no edits' ? '–' : format(seconds, 's'),
        format(peaks.get('ingress')),
        format(peaks.get('worker')),
        describeDelay(delays.get('ingress')),
        describeDelay(delays.get('worker')),
        `${format(chat.latency.p50Ms)} / ${format(chat.latency.p99Ms)}`,
        format((used.get('ingress') ?? 0) / 1000),
        format((used.get('worker') ?? 0) / 1000),
      ]),
    },
    goals,
  };
}

/** Readers that take the head and then nothing: what the ingress holds meanwhile is what it holds for them. */
async function measureDownloads(context: BenchContext, service: Service): Promise<Part> {
  context.say(`${DOWNLOADS} slow downloads`);
  await service.stopProcesses();
  await service.startProcesses();
  const id = await generate(service, 0, { size: LARGE_SIZE, response_format: 'url' });
  const path = `/v1/images/file/${id}`;
  await send(service, { path, key: service.hotKey });
  const pid = service.pids.get('ingress') ?? 0;
  const before = residentMegabytes(pid);
  let most = before;
  const sampling = setInterval(() => {
    most = Math.max(most, residentMegabytes(pid));
  }, SAMPLE_MS);
  const downloads = await Promise.all(
    Array.from({ length: DOWNLOADS }, () => openDownload(service, path, service.hotKey)),
  );
  await sleep(HELD_MS);
  const held = most;
  const sizes = await Promise.all(
    downloads.map(async (download) => {
      let bytes = 0;
      for await (const part of download as AsyncIterable<Buffer>) bytes += part.length;
      if (bytes !== Number(download.headers['content-length']))
        throw new Error(`cut off after ${bytes} bytes`);
      return bytes;
    }),
  );
  clearInterval(sampling);
  const file = (sizes[0] ?? 0) / BYTES_PER_MEGABYTE;
  return {
    table: {
      title: `${DOWNLOADS} downloads of a picture of ${format(file, 'MB')} at once, by readers that take nothing for ${HELD_MS / 1000} s`,
      columns: [
        'ingress, MB before',
        'most while they wait',
        'most until all are done',
        'the files together',
      ],
      rows: [[format(before), format(held), format(most), format(file * DOWNLOADS)]],
    },
    goals: [
      atMost(
        `${DOWNLOADS} downloads: memory of ingress beyond before`,
        most - before,
        MAX_DOWNLOAD_MEGABYTES,
        'MB',
      ),
    ],
  };
}

async function run(context: BenchContext): Promise<SectionReport> {
  const { service } = context;
  if (ourTarget(context) === undefined || service === undefined) return NOT_OURS;
  try {
    const parts = [
      await measureCpu(context, service),
      await measureEdits(context, service),
      await measureDownloads(context, service),
    ];
    return {
      tables: parts.map(({ table }) => table),
      goals: parts.flatMap(({ goals }) => goals),
      notes: [
        'An upstream that sends what was asked for leaves nothing to encode: sharp’s encoding is then what a service that does encode would need. Where it sends PNG instead, the picture is encoded once here, and sharp’s own figure is from PNG too.',
        'CPU time counts all threads of a process, so sharp’s too. Peak memory is the kernel’s own (VmHWM) of fresh processes.',
      ],
    };
  } finally {
    closeConnections();
  }
}

export const images: Section = { name: 'images', title: 'Pictures', isInQuickRun: false, run };
