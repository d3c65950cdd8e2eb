// Names that would move a terminal, and numbers that JSON does not have.

import { describe, expect, it } from 'vitest';
import { failureLine, Refusal } from '../../src/protocol/errors.ts';
import { harmless, quoted } from '../../src/protocol/json.ts';
import { readPayload } from '../../src/protocol/message.ts';
import { feedLine } from '../../src/surfaces/live/lines.ts';

const hostile = 'a\u001b[31m\u009b0m\u009dtitle\u009c\u0085\u202e\u2028"\n';
const inert = /^[^\p{Cc}\p{Cf}\u2028\u2029]*$/u;

describe('a name in one line of text', () => {
  it('is a JSON string literal that moves nothing', () => {
    expect(quoted(hostile)).toMatch(inert);
    expect(JSON.parse(quoted(hostile))).toBe(hostile);
    expect(quoted('Zoë 🔔')).toBe('"Zoë 🔔"');
    expect(JSON.parse(quoted('\u{e0001}'))).toBe('\u{e0001}');
  });

  it('stays inert in the live view and in the line of a failure', () => {
    for (const kind of [
      'message',
      'attempt',
      'host_accept',
      'notice',
      'intake',
      'ack',
      'connected',
      'disconnected',
      'superseded',
    ] as const) {
      const item = {
        at: '2026-03-01T12:00:00.000Z',
        kind,
        project: hostile,
        from: hostile,
        to: hostile,
        detail: 'x',
      };
      expect(feedLine(item)).toMatch(inert);
    }
    for (const json of [true, false])
      expect(failureLine(new Refusal('usage', hostile), json)).toMatch(/^[^\p{Cc}\p{Cf}\u2028\u2029]*\n$/u);
    expect(harmless('plain')).toBe('plain');
  });
});

describe('a number beyond IEEE doubles', () => {
  it.each(['1e400', '[1,[-1e999]]', '{"a":{"b":1e309}}'])('%s is refused, not stored as null', (text) => {
    expect(readPayload('application/json', JSON.parse(text))).toMatchObject({ code: 'invalid_request' });
  });

  it('in text is text', () => {
    expect(readPayload('text/plain', '1e400')).toMatchObject({ json: '"1e400"' });
  });
});
