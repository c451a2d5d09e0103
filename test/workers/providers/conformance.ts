/**
 * What every chat adapter must do, run against each of them by `conformance.test.ts`. An adapter brings a harness that
 * makes its kinds of calls; the sentences here are the contract of `workers/providers/provider.ts`.
 */
import { inspect } from 'node:util';
import { expect } from 'chai';
import {
  type ChatCall,
  type ChatChunk,
  type Provider,
  ProviderError,
  type ProviderErrorKind,
} from '../../../workers/providers/provider.ts';

/** Words no error may repeat: they stand in the prompt and in the credential of every harness. */
export const SECRET_PROMPT = 'prompt-that-no-log-may-show';
export const SECRET_CREDENTIAL = 'sk-credential-that-no-log-may-show';

export type CallChanges = Partial<Omit<ChatCall, 'body'>> & {
  readonly body?: Readonly<Record<string, unknown>>;
};

export interface ChatHarness {
  readonly provider: Provider;
  /** Answered with several words. */
  answered(changes?: CallChanges): ChatCall;
  /** Never answered, not even its headers. */
  hanging(changes?: CallChanges): ChatCall;
  /** Streamed: breaks off after some chunks. */
  cut(changes?: CallChanges): ChatCall;
  failing(kind: ProviderErrorKind, changes?: CallChanges): ChatCall;
  /** Without usage in the answer. */
  withoutUsage(changes?: CallChanges): ChatCall;
  close(): Promise<void>;
}

export function describeChatAdapter(name: string, makeHarness: () => Promise<ChatHarness>): void {
  describe(`the ${name} chat adapter`, () => {
    let harness: ChatHarness;
    const chat = () => {
      if (harness.provider.chat === undefined) throw new Error('The provider has no chat.');
      return harness.provider.chat;
    };

    before(async () => {
      harness = await makeHarness();
    });
    after(() => harness.close());

    it('answers whole, in the shape of the convention, with its usage', async () => {
      const { completion, usage } = await chat().complete(harness.answered());
      expect(completion).to.include({ object: 'chat.completion' });
      const [choice] = choicesOf(completion);
      expect(choice?.index).to.equal(0);
      expect(choice?.finish_reason).to.equal('stop');
      expect(messageOf(completion).role).to.equal('assistant');
      expect(messageOf(completion).content).to.be.a('string').that.is.not.empty;
      expect(usage?.promptTokens).to.be.greaterThan(0);
      expect(usage?.completionTokens).to.be.greaterThan(0);
      expect(usage?.raw).to.include({
        prompt_tokens: usage?.promptTokens,
        completion_tokens: usage?.completionTokens,
      });
    });

    it('streams the same text, in several chunks, each choice finished, usage in the last chunk', async () => {
      const { completion } = await chat().complete(harness.answered());
      const chunks = await collect(chat().stream(harness.answered()));
      expect(chunks.length).to.be.greaterThan(3);
      for (const { chunk } of chunks) expect(chunk.object).to.equal('chat.completion.chunk');
      expect(contentOf(chunks, 0)).to.equal(messageOf(completion).content);
      expect(finishReasonsOf(chunks)).to.deep.equal(['stop']);
      expect(chunks.filter((chunk) => chunk.usage !== undefined)).to.have.length(1);
      expect(chunks.at(-1)?.usage?.completionTokens).to.be.greaterThan(0);
      expect(chunks.at(-1)?.chunk.choices).to.deep.equal([]);
    });

    it('gives as many choices as asked for, whole and streamed', async () => {
      const { completion } = await chat().complete(harness.answered({ body: { n: 3 } }));
      expect(choicesOf(completion).map((choice) => choice.index)).to.deep.equal([0, 1, 2]);
      const chunks = await collect(chat().stream(harness.answered({ body: { n: 3 } })));
      expect(finishReasonsOf(chunks)).to.deep.equal(['stop', 'stop', 'stop']);
      for (const index of [0, 1, 2]) expect(contentOf(chunks, index)).to.not.equal('');
    });

    it('says that usage is unknown when none was reported', async () => {
      expect((await chat().complete(harness.withoutUsage())).usage).to.equal(undefined);
      const chunks = await collect(chat().stream(harness.withoutUsage()));
      expect(chunks.every((chunk) => chunk.usage === undefined)).to.equal(true);
    });

    it('leaves the call it was given as it was', async () => {
      const call = harness.answered({ body: { temperature: 0.5, stream_options: { include_usage: false } } });
      const before = structuredClone(call.body);
      await chat().complete(call);
      await collect(chat().stream(call));
      expect(call.body).to.deep.equal(before);
    });

    for (const kind of [
      'unavailable',
      'moderated',
      'rejected',
      'misconfigured',
      'invalid_response',
    ] as const) {
      it(`throws ${kind} when it is so, whole and streamed, and shows no prompt and no credential`, async () => {
        for (const attempt of [
          () => chat().complete(harness.failing(kind)),
          () => collect(chat().stream(harness.failing(kind))),
        ]) {
          const error = await failureOf(attempt());
          expect(error).to.be.instanceOf(ProviderError);
          expect((error as ProviderError).kind).to.equal(kind);
          const shown = inspect(error, { depth: 10, showHidden: true });
          expect(shown).to.not.include(SECRET_PROMPT);
          expect(shown).to.not.include(SECRET_CREDENTIAL);
        }
      });
    }

    it('throws when a stream breaks off, after the chunks that came', async () => {
      const received: ChatChunk[] = [];
      const error = await failureOf(
        (async () => {
          for await (const chunk of chat().stream(harness.cut())) received.push(chunk);
        })(),
      );
      expect((error as ProviderError).kind).to.equal('invalid_response');
      expect(received).to.not.be.empty;
    });

    it('rethrows the reason of a signal that was aborted before', async () => {
      const reason = new Error('The client went away.');
      const changes = { signal: AbortSignal.abort(reason) };
      expect(await failureOf(chat().complete(harness.answered(changes)))).to.equal(reason);
      expect(await failureOf(collect(chat().stream(harness.answered(changes))))).to.equal(reason);
    });

    it('rethrows the reason within a second when aborted while waiting', async () => {
      for (const run of [
        (call: ChatCall) => chat().complete(call),
        (call: ChatCall) => collect(chat().stream(call)),
      ]) {
        const controller = new AbortController();
        const reason = new Error('The deadline passed.');
        const failure = failureOf(run(harness.hanging({ signal: controller.signal })));
        setImmediate(() => controller.abort(reason));
        const abortedAt = performance.now();
        expect(await failure).to.equal(reason);
        expect(performance.now() - abortedAt).to.be.below(1_000);
      }
    });

    it('rethrows the reason when aborted in the middle of a stream', async () => {
      const controller = new AbortController();
      const reason = new Error('Cancelled.');
      const iterator = chat()
        .stream(harness.answered({ signal: controller.signal }))
        [Symbol.asyncIterator]();
      await iterator.next();
      controller.abort(reason);
      const error = await failureOf(
        (async () => {
          while ((await iterator.next()).done !== true);
        })(),
      );
      expect(error).to.equal(reason);
      expect((await iterator.next()).done).to.equal(true);
    });

    it('ends quietly when the reader stops', async () => {
      for await (const { chunk } of chat().stream(harness.answered())) {
        expect(chunk.choices).to.be.an('array');
        break;
      }
      const iterator = chat().stream(harness.answered())[Symbol.asyncIterator]();
      await iterator.next();
      expect((await iterator.return?.())?.done).to.equal(true);
      expect((await iterator.next()).done).to.equal(true);
    });

    it('closes more than once', async () => {
      const other = await makeHarness();
      await other.provider.close();
      await other.provider.close();
      await other.close();
    });
  });
}

export async function collect(stream: AsyncIterable<ChatChunk>): Promise<ChatChunk[]> {
  const chunks: ChatChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('It was expected to fail and did not.');
}

export function choicesOf(object: Readonly<Record<string, unknown>>): Record<string, unknown>[] {
  return object.choices as Record<string, unknown>[];
}

function messageOf(completion: Readonly<Record<string, unknown>>): { role: string; content: string } {
  return choicesOf(completion)[0]?.message as { role: string; content: string };
}

export function contentOf(chunks: readonly ChatChunk[], index: number): string {
  return chunks
    .flatMap(({ chunk }) => choicesOf(chunk))
    .filter((choice) => choice.index === index)
    .map((choice) => (choice.delta as { content?: string }).content ?? '')
    .join('');
}

export function finishReasonsOf(chunks: readonly ChatChunk[]): unknown[] {
  return chunks
    .flatMap(({ chunk }) => choicesOf(chunk))
    .map((choice) => choice.finish_reason)
    .filter((reason) => reason !== null);
}
