/** What the events of a streamed image answer mean: partial pictures, finished ones, and whether the stream may end. */
import { type ImageCall, type ImageEvent, ProviderError } from '../provider.ts';
import { isObject } from './errors.ts';
import type { EventInterpreter } from './event-stream.ts';
import { decodePicture, revisedPromptOf } from './image-answer.ts';

export class ImageEvents implements EventInterpreter<ImageEvent> {
  readonly #call: Pick<ImageCall, 'count' | 'partialImages'>;
  #finished = 0;
  #hasBegunAnother = false;

  constructor(call: Pick<ImageCall, 'count' | 'partialImages'>) {
    this.#call = call;
  }

  get isComplete(): boolean {
    return this.#finished === this.#call.count;
  }

  /** The wire does not say which picture an event belongs to: one comes after the other. */
  take(event: Readonly<Record<string, unknown>>): ImageEvent | undefined {
    switch (event.type) {
      case 'image_generation.partial_image':
      case 'image_edit.partial_image':
        return this.#partial(event);
      case 'image_generation.completed':
      case 'image_edit.completed': {
        const index = this.#finished;
        const image = { bytes: decodePicture(event.b64_json), revisedPrompt: revisedPromptOf(event) };
        this.#finished += 1;
        this.#hasBegunAnother = false;
        return { kind: 'image', index, image, usage: isObject(event.usage) ? event.usage : undefined };
      }
      default:
        return undefined;
    }
  }

  /** Fewer than asked for are what the provider gave, unless it was cut off or had begun another. */
  checkEnd(by: 'done' | 'end' | 'cut'): void {
    if (this.isComplete) return;
    if (by === 'cut' || this.#finished === 0 || this.#hasBegunAnother)
      throw new ProviderError('invalid_response', 'The stream ended before the last picture.');
  }

  #partial(event: Readonly<Record<string, unknown>>): ImageEvent | undefined {
    const partialIndex = event.partial_image_index;
    if (!Number.isInteger(partialIndex) || (partialIndex as number) < 0)
      throw new ProviderError('invalid_response', 'A partial picture has no number.');
    const isOfTheNext = (partialIndex as number) < this.#call.partialImages;
    if (isOfTheNext) this.#hasBegunAnother = true;
    // Some servers send the finished picture once more as the last partial one: more than asked for is not passed on.
    if (!isOfTheNext) return undefined;
    return {
      kind: 'partial',
      index: this.#finished,
      partialIndex: partialIndex as number,
      bytes: decodePicture(event.b64_json),
    };
  }
}
