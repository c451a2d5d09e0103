import { ProviderError } from './provider.ts';

/** Says no to what an adapter cannot pass on, rather than leave it out silently. Names are of our own schema, never a caller's words. */
export function refuseUnknown(options: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || known.has(name)) continue;
    throw new ProviderError('rejected', 'The provider does not know an option of the call.', {
      publicMessage: `This voice's provider does not support ${name}.`,
      param: name,
    });
  }
}
