/**
 * Letters drawn as lines, for words in pictures: they look alike on every machine, also on one without any font. Capital
 * letters, digits and common signs; other writing becomes a pattern of dots, one for each character.
 */

/** Of a letter in its own units: 4 wide, 6 high, and 2 between two letters. */
const LETTER_HEIGHT = 6;
const ADVANCE = 6;

/** Strokes from point to point, each point two digits (x, then y downwards); strokes are parted by spaces. */
const STROKES: Readonly<Record<string, string>> = {
  A: '0602204246 0444',
  B: '06003041423303 3344453606',
  C: '4130100105163645',
  D: '00063645413000',
  E: '40000646 0333',
  F: '400006 0333',
  G: '41301001051636454323',
  H: '0006 4046 0343',
  I: '1030 2026 1636',
  J: '404536160504',
  K: '0006 4003 1246',
  L: '000646',
  M: '0600234046',
  N: '06004640',
  O: '103041453616050110',
  P: '06003041423303',
  Q: '103041453616050110 2446',
  R: '06003041423303 2346',
  S: '413010010213334445361605',
  T: '0040 2026',
  U: '000516364540',
  V: '002640',
  W: '0016233640',
  X: '0046 4006',
  Y: '002340 2326',
  Z: '00400646',
  0: '103041453616050110 0541',
  1: '112026 1636',
  2: '01103041420646',
  3: '01103041423313 334445361605',
  4: '36300444',
  5: '400003334445361605',
  6: '30100105163645443303',
  7: '004016',
  8: '103041423313020110 133344453616050413',
  9: '43130201103041453616',
  '.': '26',
  ',': '2517',
  ':': '22 26',
  ';': '22 2517',
  '!': '2024 26',
  '?': '01103041422324 26',
  "'": '2022',
  '"': '1012 3032',
  '-': '1333',
  _: '0646',
  '+': '1333 2125',
  '=': '0242 0444',
  '/': '4006',
  '<': '410345',
  '>': '014305',
  '[': '30101636',
  ']': '10303616',
  '(': '30111536',
  ')': '10313516',
  '&': '46011020210405163644',
  '#': '1016 3036 0242 0444',
  '%': '4006 0001 4546',
  '*': '2125 0244 0442',
};

export interface Lettering {
  /** The `d` of an SVG path to be stroked with round caps, without a fill. */
  readonly path: string;
  readonly width: number;
}

/** One line of text, its upper left corner at (x, y), with letters so high; in pixels. */
export function letter(text: string, x: number, y: number, heightPx: number): Lettering {
  const unit = heightPx / LETTER_HEIGHT;
  const parts: string[] = [];
  let left = 0;
  for (const character of plain(text)) {
    for (const stroke of strokesOf(character)) {
      const points = stroke.map(([px, py]) => `${round(x + (left + px) * unit)} ${round(y + py * unit)}`);
      // A point alone is a line without length: round caps make it a dot.
      parts.push(`M${points[0]}L${points.slice(points.length > 1 ? 1 : 0).join(' ')}`);
    }
    left += ADVANCE;
  }
  return { path: parts.join(''), width: round(Math.max(left - (ADVANCE - 4), 0) * unit) };
}

/** Letters of a height that fit beside each other in so many pixels. */
export function lettersIn(widthPx: number, heightPx: number): number {
  return Math.max(1, Math.floor((widthPx / heightPx) * (LETTER_HEIGHT / ADVANCE)));
}

/** Capitals without accents, so that most of Latin writing has letters here. */
function plain(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toUpperCase()
    .replace(/\s/gu, ' ')
    .replace(/[‘’]/g, "'")
    .replace(/[“”]/g, '"')
    .replace(/[‐-―]/g, '-');
}

function strokesOf(character: string): [number, number][][] {
  if (character === ' ') return [];
  const strokes = STROKES[character];
  return strokes === undefined ? dotsOf(character.codePointAt(0) ?? 0) : strokes.split(' ').map(pointsOf);
}

function pointsOf(stroke: string): [number, number][] {
  return (stroke.match(/\d\d/g) ?? []).map((point) => [Number(point[0]), Number(point[1])]);
}

/** Mirrored, four rows of five, so that they are told apart like letters of a writing one cannot read. */
function dotsOf(codePoint: number): [number, number][][] {
  const bits = Math.imul(codePoint, 0x9e3779b1) >>> 12;
  const dots: [number, number][][] = [];
  for (let row = 0; row < 4; row += 1) {
    for (let column = 0; column < 3; column += 1) {
      if (((bits >>> (row * 3 + column)) & 1) === 0) continue;
      dots.push([[column, row * 2]]);
      if (column < 2) dots.push([[4 - column, row * 2]]);
    }
  }
  return dots;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
