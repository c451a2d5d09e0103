/** The part of autocannon's interface used here; the package ships no types. */
declare module 'autocannon' {
  namespace autocannon {
    interface RequestSpecification {
      method: string;
      headers?: Record<string, string>;
      body?: string;
    }
    interface Client {
      setRequests(requests: RequestSpecification[]): void;
    }
    interface Options {
      url: string;
      connections: number;
      duration?: number;
      amount?: number;
      timeout?: number;
      requests?: RequestSpecification[];
      verifyBody?: (body: string) => boolean;
      setupClient?: (client: Client) => void;
    }
    interface Result {
      errors: number;
      mismatches: number;
      requests: { sent: number; total: number };
    }
    interface Instance extends PromiseLike<Result> {
      on(
        event: 'response',
        listener: (client: Client, status: number, bytes: number, responseMs: number) => void,
      ): this;
      on(event: 'reqMismatch', listener: (body: string) => void): this;
      on(event: 'reqError', listener: (error: Error) => void): this;
    }
  }
  function autocannon(options: autocannon.Options): autocannon.Instance;
  export = autocannon;
}
