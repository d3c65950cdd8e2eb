// The hook of prompts notes when a person wrote, and nothing else; what a host put into a turn leaves the mark as it was.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { renderNotice } from '../../src/protocol/notices.ts';
import { type Home, makeHome } from './home.ts';
import { runHook } from './hook.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const marks = (): string[] =>
  readdirSync(path.join(home.env.POSTBELL_HOME as string, 'runtime')).filter((name) =>
    name.startsWith('prompt-'),
  );
const fileOf = (name: string): string => path.join(home.env.POSTBELL_HOME as string, 'runtime', name);
const prompt = (text: string, session_id = 's1') =>
  runHook(home, 'prompt', { session_id, hook_event_name: 'UserPromptSubmit', prompt: text }, { env: {} });

it('[HOST-077] counts a person\u2019s prompt, and none that the host made or that is a notice of this store', async () => {
  const before = Date.now();
  await prompt('please look at the parser; SECRET');
  const [name, ...others] = marks();
  expect(others).toEqual([]);
  const file = fileOf(name as string);
  const text = readFileSync(file, 'utf8');
  expect(Number(text)).toBeGreaterThanOrEqual(before);
  expect(Number(text)).toBeLessThanOrEqual(Date.now());
  expect(text).toMatch(/^\d+\n$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const wrapped = [
    '<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]\n\n<task-notification>\n<summary>Stop hook feedback</summary>',
    '<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>',
    '<channel source="plugin:postbell:postbell" from="alice">\nhello\n</channel>',
    'Another Claude session sent a message:\n<cross-session-message from="uds:1">\nhello\n</cross-session-message>',
    renderNotice({ notification_id: '0123456789ab', unread: 2, progress: 0 }),
  ];
  for (const one of wrapped) expect((await prompt(one)).code).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe(text);
  await prompt('go on');
  expect(Number(readFileSync(file, 'utf8'))).toBeGreaterThan(Number(text));
});
