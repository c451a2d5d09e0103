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
});
