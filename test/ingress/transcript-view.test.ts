import { expect } from 'chai';
import { describe, it } from 'mocha';
import { transcriptView } from '../../ingress/routes/audio/transcript-view.ts';

describe('subtitles', () => {
  const result = {
    model: 'm',
    text: 'one two',
    language: null,
    durationMs: 3_725_500,
    words: null,
    costAp: 3,
    segments: [
      { start: 0, end: 1.2345, text: ' one ' },
      { start: 1.2345, end: 2, text: '   ' },
      { start: 3600, end: 3725.5, text: 'two\n\nlines' },
    ],
  };

  it('number what was said, in hours, minutes, seconds and milliseconds', () => {
    expect(transcriptView({ ...result, format: 'srt' })).to.equal(
      '1\n00:00:00,000 --> 00:00:01,235\none\n\n2\n01:00:00,000 --> 01:02:05,500\ntwo\nlines\n',
    );
    expect(transcriptView({ ...result, format: 'vtt' })).to.equal(
      'WEBVTT\n\n00:00:00.000 --> 00:00:01.235\none\n\n01:00:00.000 --> 01:02:05.500\ntwo\nlines\n',
    );
  });

  it('of silence are none', () => {
    const silence = { ...result, text: '', segments: null };
    expect(transcriptView({ ...silence, format: 'srt' })).to.equal('');
    expect(transcriptView({ ...silence, format: 'vtt' })).to.equal('WEBVTT\n\n');
  });
});
