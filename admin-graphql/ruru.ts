/**
 * The page for a person: Ruru (GraphiQL), with every asset from this process. The page itself needs no token, each query does;
 * a banner says where it goes. The token stays in the page: nothing of the headers is kept in the browser.
 */
import { OPERATOR_TOKEN_PREFIX } from '../core/keys.ts';

const BANNER_PIXELS = 36;

const HEADERS = JSON.stringify({ Authorization: `Bearer ${OPERATOR_TOKEN_PREFIX}` }, null, 2);

const QUERY = `# Complete the token in Headers below, then press the two
# arrows at the lower left: the schema is read again.

query Overview {
  queueTasks {
    nodes { task waiting running failed oldestWaitingAt }
  }
  requests(first: 10) {
    nodes { id state modelId holdAp costAp account { name } }
  }
  accountsAwaitingApproval {
    nodes { id name createdAt }
  }
}
`;

const STYLE = `<style>
#svc-hint { box-sizing: border-box; height: ${BANNER_PIXELS}px; padding: 0 16px; line-height: ${BANNER_PIXELS}px;
  font: 13px/${BANNER_PIXELS}px system-ui, sans-serif; background: #1f2937; color: #f9fafb; white-space: nowrap; overflow: hidden; }
#svc-hint code { font: 12px/1 ui-monospace, monospace; background: #374151; padding: 2px 5px; border-radius: 3px; }
#ruru-root { height: calc(100vh - ${BANNER_PIXELS}px); }
</style>`;

const HINT = `<div id="svc-hint">Queries need a token: <code>{"Authorization": "Bearer ${OPERATOR_TOKEN_PREFIX}…"}</code> in the
<b>Headers</b> pane below the editor. Issue one with
<code>npm run svc -- admin-token issue --name YOU --role reader</code>.</div>`;

/** GraphiQL's history would keep the headers of every query, and so the token, in the browser's storage. */
const FORGET_HEADERS = `<script>
(() => {
  const setItem = Storage.prototype.setItem;
  const withoutHeaders = (text) => {
    try {
      return JSON.stringify(JSON.parse(text, (key, value) => (key === 'headers' ? undefined : value)));
    } catch {
      return text;
    }
  };
  Storage.prototype.setItem = function (key, value) {
    if (key === 'graphiql:headers') return;
    setItem.call(this, key, String(key).startsWith('graphiql:') ? withoutHeaders(String(value)) : value);
  };
})();
</script>`;

type RuruOptions = NonNullable<GraphileConfig.Preset['ruru']>;

export const ruruOptions: RuruOptions = {
  // its types ask for every property, since those of GraphiQL, where they are optional, need React's
  clientConfig: {
    defaultHeaders: HEADERS,
    defaultQuery: QUERY,
    isHeadersEditorEnabled: true,
    showPersistHeadersSettings: false,
  } as NonNullable<RuruOptions['clientConfig']>,
  htmlParts: {
    titleTag: '<title>Operators · GraphQL</title><link rel="icon" href="data:,">',
    configScript: (original) => FORGET_HEADERS + original,
    styleTags: (original) => original + STYLE,
    bodyContent: (original) => HINT + original,
  },
};

/** What the page may load: its own files, and the workers its editor makes of them. */
export const PAGE_POLICY = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "worker-src 'self' blob:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');
