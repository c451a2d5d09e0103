/** The terms of licenses by their names. A name never changes its meaning: other terms get another name. */

export const CURRENT_TERMS = 'svc-image-1';

const TERMS: Readonly<Record<string, { readonly en: string; readonly ja: string }>> = {
  'svc-image-1': {
    en: 'Anybody may view, share and reproduce this image, also commercially, if it is stated that an AI model made it. Its provenance manifest is not to be removed. Rights of third parties in what it depicts are not granted.',
    ja: 'AI モデルが生成した画像であることを明示すれば、どなたでも本画像を閲覧、共有、複製でき、商用にも利用できます。来歴情報(プロベナンス・マニフェスト)を取り除くことはできません。描かれているものに関する第三者の権利は許諾の対象に含まれません。',
  },
};

export function termsView(name: string): Record<string, unknown> {
  return { id: name, text: TERMS[name] ?? null };
}
