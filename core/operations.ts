/**
 * What the service itself does for a price: it stands in the catalogue like any model, as a `gateway` priced by the call, under an id
 * that is fixed here. It has no routes, for no provider is asked. Where the catalogue has none of that id, it is not on offer.
 */

/** Publishing a picture, and making a certificate of one. */
export const GALLERY_SUBMIT = 'gallery-submit';

/** By id: the endpoint that the price lists name. */
const ENDPOINTS: ReadonlyMap<string, string> = new Map([[GALLERY_SUBMIT, 'POST /v1/images/{id}/publish']]);

export function endpointOfOperation(modelId: string): string | undefined {
  return ENDPOINTS.get(modelId);
}

export function isOperation(modelId: string): boolean {
  return ENDPOINTS.has(modelId);
}
