/** What the sandbox reads of a chat body, which was validated long before: anything else in it is as if it were not there. */

export type Fields = Readonly<Record<string, unknown>>;

export function lastUserText(body: Fields): string {
  const message = listOf(body.messages).findLast((candidate) => candidate.role === 'user');
  return message === undefined ? '' : contentText(message);
}

export function lastMessage(body: Fields): Fields | undefined {
  return listOf(body.messages).at(-1);
}

export function contentText(message: Fields): string {
  if (typeof message.content === 'string') return message.content;
  return listOf(message.content)
    .map((part) => (typeof part.text === 'string' ? part.text : ''))
    .filter(Boolean)
    .join('\n');
}

export function imageCount(body: Fields): number {
  return listOf(body.messages).reduce(
    (sum, message) => sum + listOf(message.content).filter((part) => part.type === 'image_url').length,
    0,
  );
}

export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as unknown[]).filter(isFields) : [];
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
