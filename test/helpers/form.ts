/** Forms by hand, for bodies that a client library would not send. */

export const BOUNDARY = 'a-boundary-of-the-tests';
export const FORM_HEADERS = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };

/** A whole form of text fields and files. */
export function form(fields: Record<string, string>, files: Record<string, Buffer> = {}): Buffer {
  const parts = [
    ...Object.entries(fields).map(([name, value]) => formPart(`name="${name}"`, Buffer.from(value))),
    ...Object.entries(files).map(([name, bytes]) =>
      formPart(`name="${name}"; filename="${name}.bin"`, bytes, 'application/octet-stream'),
    ),
  ];
  return Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

/** One part, without the end of the form. */
export function formPart(disposition: string, body: Buffer, contentType?: string): Buffer {
  const type = contentType === undefined ? '' : `content-type: ${contentType}\r\n`;
  return Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\ncontent-disposition: form-data; ${disposition}\r\n${type}\r\n`),
    body,
    Buffer.from('\r\n'),
  ]);
}
