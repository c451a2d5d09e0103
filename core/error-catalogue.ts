/**
 * Every error code the service answers with: its HTTP status and its message in both languages.
 * A message says what went wrong and what to do next. It names a `{placeholder}` only for a detail that
 * every throw of that code must carry (docs: specification, "Errors"; decisions §1, §3, §9); a detail
 * that comes only sometimes (`resets_at`, `allowed`) stays a sibling field and out of the sentence.
 * 405 (known path, wrong method) is `not_found` with the status set by the router, hence no entry here.
 */
interface CatalogueEntry {
  readonly status: number;
  readonly en: string;
  readonly ja: string;
}

export const ERROR_CATALOGUE = {
  // 400: the request itself is wrong
  invalid_json: {
    status: 400,
    en: 'The request body could not be parsed. Send valid JSON, or multipart/form-data where the endpoint asks for it, with a matching Content-Type.',
    ja: 'リクエスト本文を解析できませんでした。正しい JSON(またはエンドポイントが求める場合は multipart/form-data)を、対応する Content-Type を付けて送信してください。',
  },
  invalid_parameter: {
    status: 400,
    en: 'The parameter "{param}" is missing, has the wrong type, or is out of range. Correct it and send the request again.',
    ja: 'パラメータ「{param}」が不足しているか、型または範囲が正しくありません。修正して再送信してください。',
  },
  invalid_prefix: {
    status: 400,
    en: 'Only the prefix "svc_test_" may be requested for a new key. Leave the prefix out to let the server choose it.',
    ja: '新しいキーで指定できるプレフィックスは「svc_test_」だけです。指定を省略すると、サーバーがプレフィックスを決定します。',
  },
  prompt_required: {
    status: 400,
    en: 'A prompt is required. Send a non-empty "prompt".',
    ja: 'プロンプトが必要です。空でない「prompt」を指定してください。',
  },
  quality_not_priced: {
    status: 400,
    en: 'This model has no price for the requested quality. Choose one of the qualities listed in "allowed"; GET /v1/models shows the price table.',
    ja: '指定された品質は、このモデルの料金表にありません。「allowed」にある品質から選んでください。料金表は GET /v1/models で確認できます。',
  },
  size_not_priced: {
    status: 400,
    en: 'This model has no price for the requested size. Choose one of the sizes listed in "allowed"; GET /v1/models shows the price table.',
    ja: '指定されたサイズは、このモデルの料金表にありません。「allowed」にあるサイズから選んでください。料金表は GET /v1/models で確認できます。',
  },
  text_required: {
    status: 400,
    en: 'Text to speak is required. Send a non-empty "text" (or "input").',
    ja: '読み上げるテキストが必要です。空でない「text」(または「input」)を指定してください。',
  },
  text_too_long: {
    status: 400,
    en: 'The text is too long: at most {max_characters} characters are accepted per request. Shorten it or split it over several requests.',
    ja: 'テキストが長すぎます。1 回のリクエストで送信できるのは {max_characters} 文字までです。短くするか、複数のリクエストに分割してください。',
  },
  unknown_character: {
    status: 400,
    en: 'There is no such character that is public or your own. GET /v1/char lists the public ones.',
    ja: '指定されたキャラクターは存在しないか、利用できません。公開キャラクターの一覧は GET /v1/char で確認できます。',
  },
  unsupported_format: {
    status: 400,
    en: 'This audio or image format is not accepted, or cannot be produced here. Choose another format, one of those in "allowed" where they are listed; GET / lists the endpoints.',
    ja: 'この音声・画像形式は受け付けていないか、出力できません。「allowed」がある場合はその中から、別の形式を選んでください。エンドポイントの一覧は GET / で確認できます。',
  },
  unsupported_parameter: {
    status: 400,
    en: 'The parameter "{param}" is not supported by this endpoint or model. Remove it and send the request again.',
    ja: 'パラメータ「{param}」は、このエンドポイントまたはモデルでは使用できません。削除して再送信してください。',
  },

  // 401: who is asking
  invalid_api_key: {
    status: 401,
    en: 'The API key is malformed or unknown. Check that the whole key is sent as "Authorization: Bearer <API_KEY>".',
    ja: 'API キーの形式が正しくないか、登録されていません。キー全体を「Authorization: Bearer <API_KEY>」の形で送信しているか確認してください。',
  },
  invalid_user_token: {
    status: 401,
    en: 'A valid user token is required in the X-SVC-User-Token header; it is missing, malformed or expired. Sign in again to get a new one.',
    ja: 'X-SVC-User-Token ヘッダーに有効なユーザートークンが必要です。トークンがないか、形式が正しくないか、有効期限が切れています。再度サインインして新しいトークンを取得してください。',
  },
  key_expired: {
    status: 401,
    en: 'This API key has expired. Issue a new key and use that one.',
    ja: 'この API キーは有効期限が切れています。新しいキーを発行して使用してください。',
  },
  key_revoked: {
    status: 401,
    en: 'This API key has been revoked. Issue a new key and use that one.',
    ja: 'この API キーは無効化されています。新しいキーを発行して使用してください。',
  },
  not_authenticated: {
    status: 401,
    en: 'This endpoint needs authentication. Send your API key as "Authorization: Bearer <API_KEY>".',
    ja: 'このエンドポイントには認証が必要です。API キーを「Authorization: Bearer <API_KEY>」の形で送信してください。',
  },
  unauthorized: {
    status: 401,
    en: 'The additional secret this operation needs is missing or wrong. Check the X-Cert-Approve-Secret header.',
    ja: 'この操作に必要な追加のシークレットがないか、正しくありません。X-Cert-Approve-Secret ヘッダーを確認してください。',
  },

  // 402: who pays
  insufficient_ap: {
    status: 402,
    en: 'Not enough AP: this request needs {required_ap} AP, and {available_ap} AP are available ({held_ap} AP are held by requests in progress). Add AP, wait for those requests, or make a smaller request.',
    ja: 'AP が不足しています。このリクエストには {required_ap} AP が必要ですが、利用できるのは {available_ap} AP です(処理中のリクエストが {held_ap} AP を確保しています)。AP を追加するか、処理の完了を待つか、リクエストを小さくしてください。',
  },
  service_budget_exhausted: {
    status: 402,
    en: 'The sponsor’s budget for this service does not cover this request. Ask the service’s operator, or call without X-SVC-Service to pay from your own balance.',
    ja: 'このサービスのスポンサー予算の残りでは、このリクエストを処理できません。サービスの運営者に問い合わせるか、X-SVC-Service を付けずにご自身の残高で利用してください。',
  },
  service_closed: {
    status: 402,
    en: 'This service has been closed and takes no more requests. GET /v1/services lists the services that are open.',
    ja: 'このサービスは終了しており、リクエストを受け付けていません。利用できるサービスは GET /v1/services で確認できます。',
  },

  // 403: not allowed to
  account_too_new: {
    status: 403,
    en: 'The free allowance is for accounts older than a minimum age, and this one is too new. Try again later, or purchase AP to start now.',
    ja: 'アカウントの作成から日が浅いため、無料枠はまだ利用できません。しばらく待つか、AP を購入するとすぐに利用できます。',
  },
  card_required: {
    status: 403,
    en: 'A card on file is required to keep using the free grant. Register a card in the dashboard, or purchase AP.',
    ja: '無料付与分の利用を続けるには、カードの登録が必要です。ダッシュボードでカードを登録するか、AP を購入してください。',
  },
  enterprise_manual_approval: {
    status: 403,
    en: 'This enterprise account is waiting for manual approval. Contact support if it takes longer than expected.',
    ja: 'この法人アカウントは承認待ちです。時間がかかっている場合は、サポートまでお問い合わせください。',
  },
  forbidden_scope: {
    status: 403,
    en: 'This operation is reserved for another role, such as an approver or the issuer. Ask somebody who holds that role, or use their key.',
    ja: 'この操作は、承認者や発行者など、特定の役割を持つ方だけが実行できます。該当する役割を持つ方に依頼してください。',
  },
  model_not_allowed: {
    status: 403,
    en: 'This key, account or service is limited to certain models, and this model is not one of them. Choose an allowed model, or change the list of allowed models.',
    ja: 'このキー、アカウントまたはサービスで使えるモデルは限定されており、指定されたモデルは含まれていません。許可されたモデルを選ぶか、許可モデルの設定を変更してください。',
  },
  paid_requires_user_billing: {
    status: 403,
    en: 'This service is paid by its users. Send the X-SVC-User-Token of a user whose account can be billed.',
    ja: 'このサービスは利用者による支払いが必要です。請求可能なアカウントを持つユーザーの X-SVC-User-Token を送信してください。',
  },
  request_over_key_cap: {
    status: 403,
    en: 'This request would reserve {requested_ap} AP, which goes beyond this key’s cap of {cap_ap} AP. Make a smaller request, wait for the cap to reset, or raise the cap in the key’s settings.',
    ja: 'このリクエストは {requested_ap} AP を確保しますが、キーの上限 {cap_ap} AP を超えます。リクエストを小さくするか、上限のリセットを待つか、キーの設定で上限を引き上げてください。',
  },
  sponsor_stage_no_on_behalf: {
    status: 403,
    en: 'While a sponsor pays for this service, it cannot be called on behalf of somebody else. Send the user token of the person making the request.',
    ja: 'スポンサーが費用を負担している間、このサービスを他の人の代理で呼び出すことはできません。本人のユーザートークンを送信してください。',
  },
  subject_required: {
    status: 403,
    en: 'This service needs to know for whom the request is made. Send that person’s user token in the X-SVC-User-Token header.',
    ja: 'このサービスでは、誰のためのリクエストかを示す必要があります。対象となる方のユーザートークンを X-SVC-User-Token ヘッダーで送信してください。',
  },

  // 404: not there
  api_key_not_found: {
    status: 404,
    en: 'There is no API key with this id among yours. GET /v1/me/keys lists your keys.',
    ja: 'この ID の API キーは見つかりません。お持ちのキーは GET /v1/me/keys で確認できます。',
  },
  model_not_found: {
    status: 404,
    en: 'There is no such model for this endpoint. GET /v1/models lists every model with its type.',
    ja: 'このエンドポイントで使えるモデルの中に、指定されたものは見つかりません。モデルと種類の一覧は GET /v1/models で確認できます。',
  },
  no_credits_record: {
    status: 404,
    en: 'This account has no credits yet. The record is opened, with the initial grant, by the first billable call.',
    ja: 'このアカウントにはまだクレジットの記録がありません。最初の課金対象の呼び出しで、初回付与とともに作成されます。',
  },
  not_found: {
    status: 404,
    en: 'Nothing was found for this path and method. Check the address, the method and the id; GET / lists the endpoints.',
    ja: '指定されたパスとメソッドに該当するものが見つかりません。アドレス、メソッド、ID を確認してください。エンドポイントの一覧は GET / で確認できます。',
  },

  // 409: clashes with what is already there
  entry_already_certified: {
    status: 409,
    en: 'A certificate already exists for this entry. Use the existing one; each entry can be certified only once.',
    ja: 'このエントリーの証明書はすでに存在します。証明書は 1 エントリーにつき 1 件のため、既存の証明書を利用してください。',
  },
  idempotency_conflict: {
    status: 409,
    en: 'This Idempotency-Key was already used with a different request. Use a new key for a new request, or repeat the first one unchanged.',
    ja: 'この Idempotency-Key は、内容の異なるリクエストですでに使われています。新しいリクエストには新しいキーを使うか、最初のリクエストと同じ内容で再送信してください。',
  },
  idempotency_in_progress: {
    status: 409,
    en: 'The first request with this Idempotency-Key is still running. Wait a moment and repeat the call, or follow it at /v1/requests.',
    ja: 'この Idempotency-Key を使った最初のリクエストがまだ処理中です。しばらく待ってから再送信するか、/v1/requests で状況を確認してください。',
  },
  invalid_state: {
    status: 409,
    en: 'This operation is not possible while the status is "{status}". Fetch the current state and choose an operation it allows.',
    ja: '現在の状態「{status}」では、この操作を実行できません。最新の状態を取得し、実行できる操作を確認してください。',
  },

  // 410: was there once
  expired: {
    status: 410,
    en: 'This asset is past its retention period and is no longer stored. Generate it again, and download results you want to keep.',
    ja: 'この生成物は保存期間を過ぎたため、保存されていません。もう一度生成し、必要なものはダウンロードして保管してください。',
  },
  gone: {
    status: 410,
    en: 'This asset was deleted and cannot be restored. Generate it again if you still need it.',
    ja: 'この生成物は削除されており、復元できません。必要な場合は、もう一度生成してください。',
  },

  // 422: understood and declined
  content_moderated: {
    status: 422,
    en: 'The provider’s safety system declined this content, and nothing was charged. Sending the same request again will not help; change the prompt or the reference image.',
    ja: 'プロバイダーの安全システムにより、この内容は処理できませんでした。料金は発生していません。同じ内容の再送信では解決しないため、プロンプトまたは参照画像を変更してください。',
  },

  // 429: slow down
  ip_daily_cap: {
    status: 429,
    en: 'Your network location has reached today’s allowance for this service. Try again after the time in Retry-After, or use purchased AP.',
    ja: 'ご利用のネットワークからの本日の利用枠に達しました。Retry-After の時間が経過してから再試行するか、購入した AP で利用してください。',
  },
  rate_limited: {
    status: 429,
    en: 'Too many requests with this key. Slow down, and try again after the time in Retry-After.',
    ja: 'このキーでのリクエストが多すぎます。間隔を空け、Retry-After の時間が経過してから再試行してください。',
  },
  user_daily_cap: {
    status: 429,
    en: 'This account has reached today’s free allowance for this area. Try again after the time in Retry-After, or purchase AP.',
    ja: 'このアカウントは、この分野の本日の無料利用枠に達しました。Retry-After の時間が経過してから再試行するか、AP を購入してください。',
  },

  // 500, 503: ours or the provider's
  internal_error: {
    status: 500,
    en: 'Something went wrong on our side, and nothing was charged for this error. Try again with backoff; if it persists, contact support with the x-svc-request-id of this response.',
    ja: 'サーバー側で問題が発生しました。このエラーに料金は発生しません。間隔を空けて再試行し、解決しない場合は、このレスポンスの x-svc-request-id を添えてサポートまでお問い合わせください。',
  },
  generation_failed: {
    status: 503,
    en: 'The request did not complete. Try again with backoff.',
    ja: 'リクエストは完了しませんでした。間隔を空けて再試行してください。',
  },
  service_stage_unavailable: {
    status: 503,
    en: 'This service is still being planned and cannot be called yet. GET /v1/services shows the stage of each service.',
    ja: 'このサービスは計画段階のため、まだ利用できません。各サービスの段階は GET /v1/services で確認できます。',
  },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;
