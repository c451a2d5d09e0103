/** `svc c2pa chain`: what the workers of a deployment sign pictures with, where no certificate was bought. */
import { makeCertificateChain } from '../../core/provenance/certificate-chain.ts';
import type { Outcome } from './failure.ts';

export async function makeChain(): Promise<Outcome> {
  const { certificate, privateKey } = await makeCertificateChain();
  return { json: { certificate, private_key: privateKey }, text: `${certificate}${privateKey}`.trimEnd() };
}
