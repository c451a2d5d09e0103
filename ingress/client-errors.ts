/**
 * What Node refuses before it is a request of ours: malformed HTTP, headers too large or too slow, no Host, an Expect that means
 * nothing. Answered in the envelope like everything else, with an id of its own, and then the connection is closed.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { v7 as uuidv7 } from 'uuid';
import { errorBody } from '../core/errors.ts';

/** The listener of a server's `clientError`. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  const { _httpMessage: response } = socket as { _httpMessage?: ServerResponse };
  if (error.code === 'ECONNRESET' || !socket.writable || response?.headersSent === true) {
    socket.destroy();
    return;
  }
  const [status, param] = faultOf(error);
  const body = JSON.stringify(errorBody('invalid_parameter', 'en', { param }));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nx-svc-request-id: ${uuidv7()}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** The listener of a server's `checkExpectation`; Node would answer without a body. */
export function answerExpectation(_request: IncomingMessage, response: ServerResponse): void {
  refuse(response, 417, 'Expect');
}

/** RFC 9112, 3.2. Node would answer without a body, so a server is made with `requireHostHeader: false` and asks here. */
export function isRefusedForHost(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.headers.host !== undefined || request.httpVersion !== '1.1') return false;
  refuse(response, 400, 'Host');
  return true;
}

function refuse(response: ServerResponse, status: number, param: string): void {
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'x-svc-request-id': uuidv7(),
    Connection: 'close',
  });
  response.end(JSON.stringify(errorBody('invalid_parameter', 'en', { param })));
}

function faultOf(error: NodeJS.ErrnoException): readonly [number, string] {
  if (error.code === 'HPE_HEADER_OVERFLOW') return [431, 'headers'];
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return [408, 'request'];
  return [400, 'request'];
}
