// What a real Codex thread leaves behind for 45 s when it ends, and where it is when it comes back. Its time is real.

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CodexOffice, codexBinary, openCodexOffice } from '../codex.ts';
import { describeWithHost } from '../installed.ts';
import { noticesIn } from '../office.ts';
import { openTerminal } from '../terminal.ts';

const handled = { timeout: 20_000, interval: 100 };

describeWithHost('codex', 'the window of a thread', () => {
  let office: CodexOffice;
  beforeAll(async () => {
    office = await openCodexOffice();
  });
  afterAll(() => office.end());
  const texts = (thread: string): string =>
    office.model
      .requestsOf(thread)
      .map((request) => office.model.text(request))
      .join('\n');

  it('[HOST-149, HOST-150, HOST-264, MSG-043] CX11: after its end a thread is queued for 45 s and no longer; resumed elsewhere it is live there, and only there', async () => {
    const { thread, terminal } = await office.open();
    await expect.poll(() => office.card(thread), handled).toMatchObject({ generation: 1 });
    const told = () => office.records().filter(({ reason }) => reason === 'companion told').length;
    const before = told();
    await terminal.type('/quit');
    await expect.poll(told, handled).toBe(before + 1);
    const ended = Date.now();
    const inWindow = await office.sendExact(thread, 'in the window');
    expect(inWindow.native_delivery).toBeDefined();
    await pause(ended + 43_500 - Date.now());
    expect(await office.card(thread)).toBeDefined();
    await pause(ended + 46_500 - Date.now());
    expect(await office.card(thread)).toBeUndefined();
    await expect(office.sendExact(thread, 'too late')).rejects.toThrow(/recipient_unavailable: .*not_live/);
    await terminal.end();
    // Another directory, with another project.
    const other = office.directory('other');
    mkdirSync(path.join(other, 'src'), { recursive: true });
    const again = await openTerminal(office.env, other, [codexBinary(), 'resume', thread, '-C', other]);
    office.atEnd(again.end);
    await again.waitForScreen(/Ask Codex to do anything|Choose|working directory/i, 30_000);
    await again.type('hello from elsewhere');
    await expect
      .poll(async () => (await office.cards(other)).map(({ session_id }) => session_id), handled)
      .toContain(thread);
    expect(await office.card(thread)).toBeUndefined();
    expect(noticesIn(texts(thread))).toBeGreaterThan(0);
    await again.end();
  });
});
