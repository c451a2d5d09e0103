/** The error catalogue as a whole: complete, in both languages, and the same in both where it matters. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { ERROR_CATALOGUE } from '../../core/error-catalogue.ts';
import type { ErrorCode } from '../../core/errors.ts';
import { errorBody, errorMessage, isErrorCode, ServiceError } from '../../core/errors.ts';

/** The specification's table ("Errors") and, under 409, the codes that decisions §3 and §9 add. */
const SPECIFIED: Readonly<Record<number, readonly string[]>> = {
  400: [
    'invalid_json',
    'invalid_parameter',
    'invalid_prefix',
    'prompt_required',
    'quality_not_priced',
    'size_not_priced',
    'text_required',
    'text_too_long',
    'unknown_character',
    'unsupported_format',
    'unsupported_parameter',
  ],
  401: [
    'invalid_api_key',
    'invalid_user_token',
    'key_expired',
    'key_revoked',
    'not_authenticated',
    'unauthorized',
  ],
  402: ['insufficient_ap', 'service_budget_exhausted', 'service_closed'],
  403: [
    'account_too_new',
    'card_required',
    'enterprise_manual_approval',
    'forbidden_scope',
    'model_not_allowed',
    'paid_requires_user_billing',
    'request_over_key_cap',
    'sponsor_stage_no_on_behalf',
    'subject_required',
  ],
  404: ['api_key_not_found', 'model_not_found', 'no_credits_record', 'not_found'],
  409: ['entry_already_certified', 'idempotency_conflict', 'idempotency_in_progress', 'invalid_state'],
  410: ['expired', 'gone'],
  422: ['content_moderated'],
  429: ['ip_daily_cap', 'rate_limited', 'user_daily_cap'],
  500: ['internal_error'],
  503: ['generation_failed', 'service_stage_unavailable'],
};

/** The details that decisions §1, §3 and §9 promise with every answer of a code. */
const PROMISED_DETAILS: Partial<Record<ErrorCode, readonly string[]>> = {
  insufficient_ap: ['available_ap', 'held_ap', 'required_ap'],
  invalid_parameter: ['param'],
  invalid_state: ['status'],
  request_over_key_cap: ['cap_ap', 'requested_ap'],
  text_too_long: ['max_characters'],
  unsupported_parameter: ['param'],
};

const CODES = Object.keys(ERROR_CATALOGUE).filter(isErrorCode);

function placeholdersOf(message: string): string[] {
  return [...new Set(Array.from(message.matchAll(/\{(\w+)\}/g), (match) => match[1] ?? ''))].sort();
}

describe('error catalogue', () => {
  it('has exactly the codes of the specification, each with its status', () => {
    const specified = Object.entries(SPECIFIED).flatMap(([status, codes]) =>
      codes.map((code) => [code, Number(status)] as const),
    );
    const catalogued = CODES.map((code) => [code, ERROR_CATALOGUE[code].status] as const);
    expect(new Map(catalogued)).to.deep.equal(new Map(specified));
    expect(catalogued).to.have.lengthOf(specified.length);
  });

  for (const code of CODES) {
    it(`says ${code} in English and in Japanese, with promised details only`, () => {
      const { en, ja } = ERROR_CATALOGUE[code];
      expect(en).to.match(/^[A-Z].*\.$/, 'English: a sentence');
      expect(en).not.to.match(/[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u);
      expect(ja).to.match(/[\p{Script=Hiragana}\p{Script=Katakana}].*。$/u, 'Japanese: a sentence');
      const promised = PROMISED_DETAILS[code] ?? [];
      expect(placeholdersOf(en)).to.deep.equal(promised);
      expect(placeholdersOf(ja)).to.deep.equal(promised);
    });
  }
});

describe('error body', () => {
  it('puts code and filled message under error, and the details beside it', () => {
    const details = { required_ap: 500, available_ap: 20, held_ap: 480 };
    const body = errorBody('insufficient_ap', 'en', details);
    expect(Object.keys(body).sort()).to.deep.equal(['available_ap', 'error', 'held_ap', 'required_ap']);
    expect(body).to.deep.include(details);
    expect(body.error).to.deep.equal({
      code: 'insufficient_ap',
      message: errorMessage('insufficient_ap', 'en', details),
    });
  });

  it('fills every placeholder in both languages', () => {
    const details = { required_ap: 500, available_ap: 20, held_ap: 480 };
    for (const language of ['en', 'ja'] as const) {
      const message = errorMessage('insufficient_ap', language, details);
      expect(message).to.include('500 AP').and.to.include('20 AP').and.to.include('480 AP');
      expect(message).not.to.match(/[{}]/);
    }
  });

  it('takes zero as a value like any other', () => {
    const details = { required_ap: 1, available_ap: 0, held_ap: 0 };
    expect(errorMessage('insufficient_ap', 'en', details)).to.include('0 AP are available (0 AP are held');
  });

  it('does not expand a placeholder that stands inside a detail', () => {
    expect(errorMessage('invalid_parameter', 'en', { param: '{status}$&', status: 'x' })).to.include(
      '"{status}$&"',
    );
  });
});

describe('service error', () => {
  it('has the status of its code, and keeps details, cause and retry time', () => {
    const cause = new Error('upstream');
    const error = new ServiceError('rate_limited', { limit: 60 }, { cause, retryAfterSeconds: 7 });
    expect(error.status).to.equal(429);
    expect(error.details).to.deep.equal({ limit: 60 });
    expect(error.retryAfterSeconds).to.equal(7);
    expect(error.cause).to.equal(cause);
  });

  it('knows a code of the catalogue from any other string', () => {
    expect(isErrorCode('gone')).to.equal(true);
    expect(isErrorCode('toString')).to.equal(false);
    expect(isErrorCode('')).to.equal(false);
  });
});
