/**
 * Pictures as SVG text, composed from a prompt: its hash chooses colours and shapes, its words are written into it, and a mark
 * says that the sandbox drew it. The same salt gives the same picture, on every machine: letters are lines, not a font.
 */
import { letter, lettersIn } from '../../../core/lettering.ts';
import { fractionOf, hashOf } from './random.ts';

export interface Scene {
  /** The words to be written. */
  readonly words: string;
  /** Whatever the picture depends on. */
  readonly salt: string;
  readonly width: number;
  readonly height: number;
  /** How many shapes there are. */
  readonly detail: number;
  /**
   * `full` covers everything; `transparent` leaves out the background; `overlay` is drawn over another picture: a tint and
   * fewer shapes, through which that picture is still seen.
   */
  readonly ground: 'full' | 'transparent' | 'overlay';
}

/** Lines of words at most; what is left over is not written. */
const MAX_LINES = 5;
const MARK = 'sandbox';

type Draw = () => number;
type Shape = (draw: Draw, scene: Scene, colour: string) => string;

export function drawScene(scene: Scene): string {
  const draw = makeDraw(scene.salt);
  const colours = paletteOf(draw);
  const shape = pick(SHAPES, draw);
  const second = pick(SHAPES, draw);
  const { width, height, detail } = scene;
  const parts: string[] = [];
  if (scene.ground === 'full') parts.push(background(scene, draw, colours));
  if (scene.ground === 'overlay')
    parts.push(`<rect width="${width}" height="${height}" fill="${colours[0]}" opacity="0.45"/>`);
  for (let index = 0; index < detail; index += 1) {
    const colour = colours[1 + (index % (colours.length - 1))] ?? '';
    parts.push((index % 4 === 3 ? second : shape)(draw, scene, colour));
  }
  parts.push(wordsPanel(scene), markPlate(scene));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${parts.join('')}</svg>`;
}

/** Numbers from 0 to 1, one after the other. */
function makeDraw(salt: string): Draw {
  // Hashed twice, since prompts are long and numbers many.
  const seed = `${hashOf(salt)}.${hashOf(`${salt.length} ${salt}`)}`;
  let count = 0;
  return () => {
    count += 1;
    return fractionOf(`${seed}.${count}`);
  };
}

/** A ground, and four colours that stand out from it and from each other. */
function paletteOf(draw: Draw): string[] {
  const hue = draw() * 360;
  const isDark = draw() < 0.5;
  const turn = pick([30, 60, 120, 150], draw);
  const colour = (turns: number, lightness: number) =>
    `hsl(${Math.round((hue + turns) % 360)},${Math.round(55 + draw() * 35)}%,${Math.round(lightness)}%)`;
  return [
    colour(0, isDark ? 22 : 82),
    colour(turn, 45),
    colour(180, isDark ? 68 : 38),
    colour(180 + turn, 55),
    colour(360 - turn, isDark ? 78 : 28),
  ];
}

function background(scene: Scene, draw: Draw, colours: readonly string[]): string {
  const angle = Math.round(draw() * 90);
  return `<defs><linearGradient id="ground" gradientTransform="rotate(${angle} 0.5 0.5)"><stop stop-color="${colours[0]}"/><stop offset="1" stop-color="${colours[1]}"/></linearGradient></defs><rect width="${scene.width}" height="${scene.height}" fill="url(#ground)"/>`;
}

const SHAPES: readonly Shape[] = [
  function circle(draw, scene, colour) {
    const [x, y, size] = place(draw, scene);
    return `<circle cx="${x}" cy="${y}" r="${round(size / 2)}" fill="${colour}" opacity="${opacity(draw)}"/>`;
  },
  function ring(draw, scene, colour) {
    const [x, y, size] = place(draw, scene);
    return `<circle cx="${x}" cy="${y}" r="${round(size / 2)}" fill="none" stroke="${colour}" stroke-width="${round(size * (0.05 + draw() * 0.12))}" opacity="${opacity(draw)}"/>`;
  },
  function block(draw, scene, colour) {
    const [x, y, size] = place(draw, scene);
    const tall = round(size * (0.3 + draw() * 0.9));
    return `<rect x="${round(x - size / 2)}" y="${round(y - tall / 2)}" width="${size}" height="${tall}" rx="${round(size * 0.08)}" fill="${colour}" opacity="${opacity(draw)}" transform="rotate(${Math.round(draw() * 90)} ${x} ${y})"/>`;
  },
  function star(draw, scene, colour) {
    const [x, y, size] = place(draw, scene);
    const corners = 3 + Math.floor(draw() * 5);
    const inner = 0.4 + draw() * 0.5;
    const points = Array.from({ length: corners * 2 }, (_, corner) => {
      const reach = (size / 2) * (corner % 2 === 0 ? 1 : inner);
      const angle = (corner * Math.PI) / corners;
      return `${round(x + Math.sin(angle) * reach)},${round(y - Math.cos(angle) * reach)}`;
    });
    return `<polygon points="${points.join(' ')}" fill="${colour}" opacity="${opacity(draw)}" transform="rotate(${Math.round(draw() * 360)} ${x} ${y})"/>`;
  },
  function wave(draw, { width, height }, colour) {
    const y = round(draw() * height);
    const swing = round(height * (0.04 + draw() * 0.12));
    const step = round(width / (2 + Math.floor(draw() * 4)));
    return `<path d="M${-step} ${y}${`q${step / 2} ${-swing} ${step} 0t${step} 0`.repeat(Math.ceil(width / step / 2) + 2)}" fill="none" stroke="${colour}" stroke-width="${round(height * (0.008 + draw() * 0.04))}" opacity="${opacity(draw)}"/>`;
  },
];

/** Where a shape's middle is, and its size: large ones are rare. */
function place(draw: Draw, { width, height }: Scene): [x: number, y: number, size: number] {
  const size = Math.min(width, height) * (0.08 + 0.5 * draw() ** 2);
  return [round(draw() * width), round(draw() * height), round(size)];
}

function opacity(draw: Draw): number {
  return round(0.55 + draw() * 0.4);
}

/** The words on a dark plate in the lower half, as large as they fit. */
function wordsPanel({ words, width, height }: Scene): string {
  const inner = width * 0.84;
  const letterPx = Math.max(5, Math.min(width / 22, height / 18));
  const perLine = lettersIn(inner, letterPx);
  const lines = wrap(
    words,
    perLine,
    Math.max(1, Math.min(MAX_LINES, Math.floor((height * 0.5) / (letterPx * 1.7)))),
  );
  if (lines.length === 0) return '';
  const lineStep = letterPx * 1.7;
  const tall = lines.length * lineStep + letterPx * 0.7;
  const top = height - tall - height * 0.06;
  const path = lines
    .map((line, index) => {
      const y = top + letterPx * 0.7 + index * lineStep;
      return letter(line, (width - letter(line, 0, 0, letterPx).width) / 2, y, letterPx).path;
    })
    .join('');
  const side = (width - inner) / 2 - letterPx * 0.6;
  return `<rect x="${round(side)}" y="${round(top)}" width="${round(width - side * 2)}" height="${round(tall)}" rx="${round(letterPx * 0.5)}" fill="#10131a" opacity="0.78"/>${stroked(path, '#ffffff', letterPx / 7)}`;
}

/** In the upper left corner, small. */
function markPlate({ width, height }: Scene): string {
  const letterPx = Math.max(5, Math.min(width, height) / 36);
  const word = letter(MARK, letterPx * 1.4, letterPx * 1.2, letterPx);
  return `<rect x="${round(letterPx * 0.6)}" y="${round(letterPx * 0.5)}" width="${round(word.width + letterPx * 1.6)}" height="${round(letterPx * 2.4)}" rx="${round(letterPx * 0.4)}" fill="#ffffff" opacity="0.85"/>${stroked(word.path, '#10131a', letterPx / 6)}`;
}

function stroked(path: string, colour: string, thickness: number): string {
  return `<path d="${path}" fill="none" stroke="${colour}" stroke-width="${round(thickness)}" stroke-linecap="round" stroke-linejoin="round"/>`;
}

/** Into lines of so many characters; a word longer than a line is parted, and an end that is left over shows as dots. */
function wrap(text: string, perLine: number, maxLines: number): string[] {
  const lines: string[] = [];
  let line = '';
  // What cannot be on the picture need not be looked at.
  for (const word of text.slice(0, perLine * maxLines * 4).split(/\s+/u)) {
    let rest = Array.from(word);
    while (rest.length > 0) {
      const room = line === '' ? perLine : perLine - Array.from(line).length - 1;
      if (rest.length <= room) {
        line = line === '' ? rest.join('') : `${line} ${rest.join('')}`;
        rest = [];
      } else if (line !== '') {
        lines.push(line);
        line = '';
      } else {
        lines.push(rest.slice(0, perLine).join(''));
        rest = rest.slice(perLine);
      }
    }
  }
  if (line !== '') lines.push(line);
  if (lines.length <= maxLines) return lines;
  const last = Array.from(lines[maxLines - 1] ?? '').slice(0, Math.max(1, perLine - 3));
  return [...lines.slice(0, maxLines - 1), `${last.join('')}...`];
}

function pick<Item>(items: readonly Item[], draw: Draw): Item {
  return items[Math.floor(draw() * items.length)] as Item;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
