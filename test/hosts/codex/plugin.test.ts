// The plugin in a real Codex: installed and removed by the host's own commands, trusted by its person, and what it then does.

import { appendFileSync, cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { codexTrees, digestOf, versionIn } from '../../codex-tree.ts';
import { finished, postbell, root } from '../../process/postbell.ts';
import { type CodexOffice, codexBinary, openCodexOffice } from '../codex.ts';
import { describeWithHost } from '../installed.ts';

const handled = { timeout: 20_000, interval: 100 };

describeWithHost('codex', 'plugin and trust', () => {
  let office: CodexOffice;
  afterEach(() => office.end());
  const states = async () => [...new Set((await office.hooks()).map(({ trustStatus }) => trustStatus))];
  const cached = (): string => {
    const folder = path.join(office.codexHome, 'plugins/cache/postbell/postbell');
    return path.join(folder, readdirSync(folder)[0] as string);
  };

  it('[HOST-175, HOST-226, HOST-254] CX1: with trusted hooks the first request says who the thread is, and it is live under its id', async () => {
    office = await openCodexOffice();
    const { thread, terminal } = await office.open('hello');
    await expect
      .poll(() => office.card(thread), handled)
      .toMatchObject({
        session_id: thread,
        principal_id: `codex-thread-${thread}`,
        host_kind: 'codex',
        bell: 'codex-queue',
        generation: 1,
      });
    const [first] = office.model.requestsOf(thread);
    const developer = first?.body.input
      .filter(({ role }) => role === 'developer')
      .flatMap(({ content }) => content);
    expect(developer?.map((part) => part?.text).join('\n')).toContain(`this session is "${thread}"`);
    expect(JSON.stringify(first?.body)).not.toContain('systemMessage');
    expect(office.records().map(({ hook, outcome }) => `${hook} ${outcome}`)).toEqual(
      expect.arrayContaining(['session-start skipped', 'codex-session notified', 'prompt skipped']),
    );
    const sent = await office.sendExact(thread, 'a word');
    await terminal.waitForScreen(/mail handled/, 20_000);
    const noticed = office.model
      .requestsOf(thread)
      .find((one) => office.model.text(one).includes('inbox notice'));
    const lines = noticed?.body.input.filter(({ role }) => role === 'developer') ?? [];
    expect(JSON.stringify(lines.at(-1))).toContain('1 message waiting for the live session');
    expect((await office.facts(sent)).kinds).toContain('intake ingested');
  });

  it('[HOST-132] hooks that nobody trusted do nothing, and Postbell writes no trust', async () => {
    office = await openCodexOffice({ plugin: 'untrusted' });
    expect(await states()).toEqual(['untrusted']);
    const config = path.join(office.codexHome, 'config.toml');
    const before = readFileSync(config);
    const { thread } = await office.exec('call get_my_session_id {}');
    expect(office.records()).toEqual([]);
    expect(await office.card(thread)).toBeUndefined();
    // The server knows the thread all the same, for Codex names it with each call.
    const [, second] = office.model.requestsOf(thread);
    expect(office.model.text(second as never)).toContain(thread);
    expect(readFileSync(config)).toEqual(before);
  });

  it('[HOST-133, HOST-255] CX2: a changed byte of the plugin takes its trust, nothing runs then, and doctor names it; a release that changes no hook leaves it', async () => {
    office = await openCodexOffice();
    expect(await states()).toEqual(['trusted']);
    const next = path.join(office.dir, 'next');
    for (const part of ['.agents', 'plugins', 'src', 'tools', 'package.json'])
      cpSync(path.join(root, part), path.join(next, part), { recursive: true });
    symlinkSync(path.join(root, 'node_modules'), path.join(next, 'node_modules'));
    // A release of another version, by its own build.
    const manifest = path.join(next, 'package.json');
    const product = JSON.parse(readFileSync(manifest, 'utf8')) as object;
    writeFileSync(manifest, JSON.stringify({ ...product, version: '9.9.9' }));
    const built = await finished(process.execPath, ['tools/build.mjs'], office.env, next);
    expect(built).toMatchObject({ code: 0 });
    const asked = [path.join(next, 'dist/postbell.cjs'), '--version'];
    expect((await finished(process.execPath, asked, office.env, next)).stdout).toContain('9.9.9');
    const tree = path.join(next, 'plugins/codex');
    expect(digestOf(tree)).toBe(codexTrees[versionIn(tree)]);
    expect(digestOf(cached())).toBe(digestOf(tree));
    for (const words of [
      ['plugin', 'remove', 'postbell@postbell'],
      ['plugin', 'marketplace', 'remove', 'postbell'],
      ['plugin', 'marketplace', 'add', next],
      ['plugin', 'add', 'postbell@postbell'],
    ])
      expect(await office.codex(words)).toMatchObject({ code: 0 });
    expect(await states()).toEqual(['trusted']);
    appendFileSync(path.join(cached(), 'skills/postbell/SKILL.md'), '\n');
    expect(await states()).toEqual(['modified']);
    const { thread } = await office.exec('hello');
    expect([office.records(), await office.card(thread)]).toEqual([[], undefined]);
    const path_ = `${path.dirname(codexBinary())}:${office.env.PATH}`;
    const { stdout } = await postbell({ ...office.env, PATH: path_ }, office.project, ['doctor', '--json']);
    const { rows } = JSON.parse(stdout) as { rows: { id: string; level: string; text: string }[] };
    const row = rows.find(({ id }) => id === 'hooks');
    expect([row?.level, row?.text]).toEqual(['warn', expect.stringMatching(/modified: (\d+) of \1/)]);
  });

  it('[HOST-131] install and removal leave foreign entries of config.toml byte for byte', async () => {
    office = await openCodexOffice({ plugin: 'none' });
    const config = path.join(office.codexHome, 'config.toml');
    const foreign =
      '\n# mine\n[mcp_servers.other]\ncommand = "true"   # kept\nargs = [ "a" ]\n\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "true"\n';
    appendFileSync(config, foreign);
    const before = readFileSync(config, 'utf8');
    for (const words of [
      ['plugin', 'marketplace', 'add', root],
      ['plugin', 'add', 'postbell@postbell'],
    ])
      expect(await office.codex(words)).toMatchObject({ code: 0 });
    expect(readFileSync(config, 'utf8').startsWith(before.trimEnd())).toBe(true);
    const there = readdirSync(cached(), { recursive: true }).map(String).sort();
    expect(there).toEqual(
      expect.arrayContaining(['.codex-plugin/plugin.json', '.mcp.json', 'hooks/hooks.json', 'launch.cjs']),
    );
    expect(there).toContain('skills/postbell/SKILL.md');
    await office.exec('hello');
    for (const words of [
      ['plugin', 'remove', 'postbell@postbell'],
      ['plugin', 'marketplace', 'remove', 'postbell'],
    ])
      expect(await office.codex(words)).toMatchObject({ code: 0 });
    expect(readFileSync(config, 'utf8')).toBe(before);
  });
});
