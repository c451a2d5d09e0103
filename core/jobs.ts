/**
 * The payload of a paid job, as app.submit_requests writes it and the executor reads it.
 */

export interface PaidJobPayload<Input = unknown> {
  /** The request's id. */
  readonly id: string;
  readonly accountId: string;
  readonly modelId: string;
  readonly priceId: number;
  readonly isStream: boolean;
  /** The ingress that waits for the answer; null when nobody does. */
  readonly ingressId: string | null;
  readonly holdAp: number;
  /** How many units (chat: output tokens per choice) the hold pays for. */
  readonly units: number;
  readonly createdAtMs: number;
  readonly deadlineAtMs: number;
  /** Null when it is too large for the payload and lies in app.request_inputs. */
  readonly input: Input | null;
}

/** What the chat route hands to the chat task. */
export interface ChatInput {
  /** The caller's validated body. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Made with a `svc_test_` key: always the sandbox. */
  readonly isTest: boolean;
  /** The price in force at reservation. */
  readonly price: { readonly apInPer1k: number; readonly apOutPer1k: number };
  /** The most prompt tokens the hold was computed for. */
  readonly promptTokens: number;
  /** Where a prompt is more than text, providers count it by rules of their own, up to the model's context; else not set. */
  readonly contextTokens?: number;
  readonly choices: number;
}

/** The names of the queue's tasks; a task's path under workers/tasks is its name. */
export const CHAT_TASK = 'chat/completions';
