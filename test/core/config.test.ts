/** What the environment may say, and what is said of it where it may not. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { loadConfig } from '../../core/config.ts';

describe('configuration', () => {
  it('takes an empty variable for one that is not set', () => {
    const empty = { HOST: '', PORT: '', BASE_URL: '', CERT_URL: '', LOG_LEVEL: '', CARD_REQUIRED_FROM: '' };
    expect(loadConfig(empty)).to.deep.equal(loadConfig({}));
    expect(loadConfig(empty).host).to.equal('127.0.0.1');
    expect(loadConfig({ ...empty, NODE_ENV: 'production' }).host).to.equal('0.0.0.0');
  });

  for (const [name, value, allowed] of [
    ['BASE_URL', 'foo', 'an http or https address'],
    ['BASE_URL', 'ftp://svc.example', 'an http or https address'],
    ['BASE_URL', 'http:svc.example', 'an http or https address'],
    ['BASE_URL', 'https://svc.example/?a=1', 'an http or https address'],
    ['CERT_URL', '/', 'an http or https address'],
    ['LOG_LEVEL', 'bogus', 'one of fatal, error, warn, info, debug, trace, silent'],
    ['CARD_REQUIRED_FROM', '5', 'an ISO 8601 date'],
    ['BETA_ENDS_AT', '2027-02-30', 'an ISO 8601 date'],
    ['BETA_ENDS_AT', '2027-02-01T09:00', 'an ISO 8601 date'],
  ] as const) {
    it(`names the variable that is not what it should be: ${name}=${value}`, () => {
      expect(() => loadConfig({ [name]: value })).to.throw(`${name} must be ${allowed}`);
    });
  }

  it('takes addresses with a path, without their last slash, and dates with or without a time', () => {
    const config = loadConfig({
      BASE_URL: 'https://svc.example/api/',
      CERT_URL: 'http://127.0.0.1:3000',
      LOG_LEVEL: 'silent',
      CARD_REQUIRED_FROM: '2027-01-31',
      BETA_ENDS_AT: '2027-01-31T09:00:00+09:00',
    });
    expect(config).to.deep.include({
      baseUrl: 'https://svc.example/api',
      certUrl: 'http://127.0.0.1:3000',
      logLevel: 'silent',
      cardRequiredFrom: new Date('2027-01-31T00:00:00Z'),
      betaEndsAt: new Date('2027-01-31T00:00:00Z'),
    });
  });
});
