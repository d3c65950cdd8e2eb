// The real Codex, in a home of its own: what its own commands leave, and what doctor says of the trust that it reports. Trust
// is written for that home alone, by the values that Codex reports.

import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { hostProgram } from '../../../tools/hosts.mjs';
import {
  askDoctor,
  type CodexInstallation,
  copiedPackage,
  examinedCodex,
  makeCodexInstallation,
} from '../../process/codex-installation.ts';
import { changes, snapshot } from '../../process/installation.ts';
import { describeWithHost } from '../installed.ts';

interface Hook {
  key: string;
  currentHash: string;
  pluginId: string | null;
}

describeWithHost('codex', 'doctor', () => {
  const copy = copiedPackage();
  afterAll(() => copy.end());
  let at: CodexInstallation;
  beforeEach(async () => {
    at = await makeCodexInstallation(copy.directory, { fake: false });
    symlinkSync(hostProgram('codex') as string, path.join(at.bin, 'codex'));
    at.env.CODEX_HOME = at.codex;
  });
  afterEach(() => at.end());

  /** A command of Codex, with the environment that doctor has. */
  const codex = (...words: string[]) =>
    new Promise<{ code: number; said: string }>((resolve) =>
      execFile(
        path.join(at.bin, 'codex'),
        words,
        { env: at.env, cwd: at.project, timeout: 60_000 },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code ?? -1), said: stdout + stderr }),
      ),
    );

  /** Hooks of the plugin, as the server of that home lists them. */
  async function hooksListed(): Promise<Hook[]> {
    const child = spawn(path.join(at.bin, 'codex'), ['app-server'], {
      env: at.env,
      cwd: at.project,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const say = (frame: object): void => void child.stdin.write(`${JSON.stringify(frame)}\n`);
    const clientInfo = { name: 'test', title: null, version: '0' };
    say({ id: 1, method: 'initialize', params: { clientInfo, capabilities: { experimentalApi: true } } });
    try {
      for await (const line of createInterface({ input: child.stdout })) {
        const { id, result } = JSON.parse(line) as { id?: number; result: { data: { hooks: Hook[] }[] } };
        if (id === 1) {
          say({ method: 'initialized' });
          say({ id: 2, method: 'hooks/list', params: { cwds: [at.project] } });
        }
        if (id === 2) return result.data.flatMap(({ hooks }) => hooks);
      }
      throw new Error('the server lists no hooks');
    } finally {
      child.kill('SIGKILL');
    }
  }

  /** What a person's review writes. */
  async function review(): Promise<void> {
    const hooks = (await hooksListed()).filter(({ pluginId }) => pluginId === 'postbell@postbell');
    expect(hooks.length).toBeGreaterThan(0);
    const lines = hooks.map(({ key, currentHash }) => {
      const [handler, content] = currentHash.split('/');
      return `\n[hooks.state.${JSON.stringify(key)}]\ntrusted_hash = "${handler}"\ntrusted_content_hash = "${content}"\n`;
    });
    writeFileSync(at.config, readFileSync(at.config, 'utf8') + lines.join(''));
  }

  const config = () => readFileSync(at.config, 'utf8');
  const hooksRow = async () => (await examinedCodex(at)).row('hooks');

  it('[HOST-132] untrusted, trusted and modified hooks are told apart, with the review as the remedy; no byte of the home changes', async () => {
    for (const words of [
      ['plugin', 'marketplace', 'add', at.package],
      ['plugin', 'add', 'postbell@postbell'],
    ])
      expect(await codex(...words)).toMatchObject({ code: 0 });
    const remedy = expect.stringMatching(/review the hooks when it asks \(Hooks need review\)/);
    let before = snapshot(at.codex);
    expect(await hooksRow()).toMatchObject({
      level: 'warn',
      text: expect.stringMatching(/without a word, untrusted: (\d+) of \1 .*nobody has reviewed them yet$/),
      hint: remedy,
    });
    expect(changes(before, snapshot(at.codex))).toEqual([]);
    await review();
    before = snapshot(at.codex);
    const sound = await examinedCodex(at);
    expect([sound.row('hooks').level, sound.row('mcp').level, sound.verdict]).toEqual([
      'pass',
      'pass',
      'PASS',
    ]);
    expect(changes(before, snapshot(at.codex))).toEqual([]);
    // Any file of the plugin, not only its hooks.
    const skill = path.join(at.copy, 'skills', 'postbell', 'SKILL.md');
    writeFileSync(skill, `${readFileSync(skill, 'utf8')}\nmore\n`);
    before = snapshot(at.codex);
    expect(await hooksRow()).toMatchObject({
      level: 'warn',
      text: expect.stringMatching(/differs from the shipped one in skills.*modified: (\d+) of \1 /),
      hint: expect.stringMatching(/^codex plugin add postbell@postbell; then start codex/),
    });
    expect(changes(before, snapshot(at.codex))).toEqual([]);
    // The remedy brings the reviewed files back.
    expect(await codex('plugin', 'add', 'postbell@postbell')).toMatchObject({ code: 0 });
    expect((await hooksRow()).level).toBe('pass');
  });

  it('--fix wires it by Codex\u2019s own commands; what others wrote in its settings stays, also after removal', async () => {
    const mine = config();
    const report = await examinedCodex(at);
    expect(report.row('mcp').hint).toBe(
      `codex plugin marketplace add ${at.package} && codex plugin add postbell@postbell`,
    );
    expect((await askDoctor(at, ['--fix', '--yes'])).code).toBe(0);
    expect(config().startsWith(mine)).toBe(true);
    expect(existsSync(path.join(at.copy, 'hooks', 'hooks.json'))).toBe(true);
    const wired = await examinedCodex(at);
    expect([wired.row('mcp').level, wired.row('hooks').level]).toEqual(['pass', 'warn']);
    for (const words of [
      ['plugin', 'remove', 'postbell@postbell'],
      ['plugin', 'marketplace', 'remove', 'postbell'],
    ])
      expect(await codex(...words)).toMatchObject({ code: 0 });
    expect(config()).toBe(mine);
  });

  it('a marketplace that moved is mended by the commands that doctor names', async () => {
    const moved = path.join(at.dir, 'moved');
    for (const part of ['plugins', '.agents'])
      cpSync(path.join(at.package, part), path.join(moved, part), { recursive: true });
    await codex('plugin', 'marketplace', 'add', moved);
    await codex('plugin', 'add', 'postbell@postbell');
    writeFileSync(at.config, config().replace(moved, path.join(at.dir, 'gone')));
    const { hint } = (await examinedCodex(at)).row('install');
    for (const words of (hint as string).split(' && '))
      expect([words, await codex(...words.split(' ').slice(1))]).toMatchObject([words, { code: 0 }]);
    expect((await examinedCodex(at)).row('install').level).toBe('pass');
    expect((await examinedCodex(at)).row('mcp').level).toBe('pass');
  });
});
