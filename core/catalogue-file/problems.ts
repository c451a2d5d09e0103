/** Where in a YAML file something stands, and what is wrong there: `file:line:column: what is wrong and what is allowed`. */
import { type Document, isAlias, isMap, isScalar, isSeq, type LineCounter, type Node } from 'yaml';
import { CatalogueFileError } from './error.ts';

export type Path = readonly (string | number)[];

export class Problems {
  readonly #found: { readonly offset: number; readonly message: string }[] = [];
  readonly #fileName: string;
  readonly #lines: LineCounter;
  readonly #document: Document;

  constructor(fileName: string, lines: LineCounter, document: Document) {
    this.#fileName = fileName;
    this.#lines = lines;
    this.#document = document;
  }

  get isEmpty(): boolean {
    return this.#found.length === 0;
  }

  addAt(offset: number, message: string): void {
    this.#found.push({ offset, message });
  }

  /** At the value of a path, or of as much of it as there is. */
  add(path: Path, message: string): void {
    this.addAt(this.#find(path, false), message);
  }

  /** At the key itself. */
  addAtKey(path: Path, message: string): void {
    this.addAt(this.#find(path, true), message);
  }

  /** The line (from 1) on which a value stands. */
  lineOf(path: Path): number {
    return this.#lines.linePos(this.#find(path, false)).line;
  }

  toError(): CatalogueFileError {
    const lines = this.#found
      .toSorted((one, other) => one.offset - other.offset)
      .map(({ offset, message }) => {
        const { line, col } = this.#lines.linePos(offset);
        return `${this.#fileName}:${line}:${col}: ${message}`;
      });
    return new CatalogueFileError([...new Set(lines)]);
  }

  #find(path: Path, isKeyWanted: boolean): number {
    let node = this.#document.contents as Node | null;
    let offset = node?.range?.[0] ?? 0;
    for (const [index, step] of path.entries()) {
      const owner: unknown = isAlias(node) ? node.resolve(this.#document) : node;
      let child: unknown;
      if (isMap(owner)) {
        const pair = owner.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(step));
        const key = pair?.key as Node | undefined;
        child = pair?.value ?? key;
        if (isKeyWanted && index === path.length - 1) child = key;
      } else if (isSeq(owner)) {
        child = owner.items[Number(step)];
      }
      const range = (child as Node | null | undefined)?.range;
      if (!range) return offset;
      node = child as Node;
      offset = range[0];
    }
    return offset;
  }
}
