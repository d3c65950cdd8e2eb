// CC17: what the host's own commands for installing, updating and removing leave of what others put into its settings.

import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { root } from '../../process/postbell.ts';
import { runClaude } from '../claude.ts';
import { bothButInCi, describeWithClaude, floor, tested } from '../installed.ts';
import { type Office, openOffice } from '../office.ts';

let office: Office;
afterEach(() => office.end());

const command = (text: string) => ({ type: 'command', command: text, timeout: 7 });
const known = {
  env: { A: 'b', ÜMLAUT: 'zwölf \u2028' },
  cleanupPeriodDays: 17,
  permissions: { allow: ['Bash(ls:*)'], deny: ['Read(./secret)'] },
  hooks: {
    Stop: [{ hooks: [command('echo foreign stop')] }],
    SessionStart: [{ matcher: 'clear', hooks: [command('echo foreign start')] }],
    PostToolUse: [{ matcher: 'Edit|Write', hooks: [command('prettier --write')] }],
  },
};

const install = [
  ['plugin', 'marketplace', 'add', root],
  ['plugin', 'install', 'postbell@postbell'],
];
const upgrade = [
  ['plugin', 'marketplace', 'update', 'postbell'],
  ['plugin', 'update', 'postbell@postbell'],
];
const removal = [
  ['plugin', 'uninstall', 'postbell@postbell'],
  ['plugin', 'marketplace', 'remove', 'postbell'],
];

describeWithClaude(
  'install and removal',
  (version) => {
    // The floor drops a key that it does not know, whoever put it there.
    const foreign = version === tested ? { ...known, unknownKey: [1, { deep: null }] } : known;
    const strict = `${JSON.stringify(foreign, null, 2)}\n`;
    const config = () => office.env.CLAUDE_CONFIG_DIR as string;
    const settings = () => path.join(config(), 'settings.json');
    const text = () => readFileSync(settings(), 'utf8');
    const run = async (all: string[][]) => {
      for (const words of all) {
        const { code, stdout, stderr } = await runClaude(office.env, words, office.project);
        expect([words.slice(1, 3), code, code === 0 ? '' : stdout + stderr]).toEqual([
          words.slice(1, 3),
          0,
          '',
        ]);
      }
    };
    /** Without what the host keeps of plugins. */
    const ofOthers = (json: string) => {
      const {
        enabledPlugins: _,
        extraKnownMarketplaces: __,
        ...rest
      } = JSON.parse(json.replace('\ufeff', ''));
      return rest as object;
    };

    it('[HOST-252, HOST-041] CC17: settings as the host writes them are the same to the byte; all other files always are; nothing of Postbell is left in them', async () => {
      office = await openOffice({ market: undefined });
      writeFileSync(settings(), strict);
      const others = {
        [path.join(office.project, '.claude', 'settings.json')]: `// mine\r\n${strict}`,
        [path.join(office.project, '.claude', 'settings.local.json')]: `\ufeff${strict}`,
        [path.join(office.project, '.mcp.json')]: '{ "mcpServers": { "own": { "command": "true", }, }, }',
        [path.join(config(), 'CLAUDE.md')]: 'mine\r\n',
        [path.join(config(), 'keybindings.json')]: '{}',
      };
      for (const [file, body] of Object.entries(others)) {
        mkdirSync(path.dirname(file), { recursive: true });
        writeFileSync(file, body);
      }
      // Once as the host itself formats it, by its own commands.
      await run([...install, ...removal]);
      const asWritten = text();
      expect(ofOthers(asWritten)).toEqual(foreign);
      for (let round = 1; round <= 2; round += 1) {
        await run(install);
        expect(ofOthers(text())).toEqual(foreign);
        expect(JSON.parse(text()).hooks).toEqual(foreign.hooks);
        await run(upgrade);
        expect(ofOthers(text())).toEqual(foreign);
        await run(removal);
        expect(text()).toBe(asWritten);
      }
      for (const [file, body] of Object.entries(others)) expect(readFileSync(file, 'utf8')).toBe(body);
      expect(text()).not.toContain('postbell');
      const state = JSON.parse(readFileSync(path.join(config(), '.claude.json'), 'utf8'));
      expect(JSON.stringify([state.mcpServers, state.projects])).not.toContain('postbell');
    });

    it('[HOST-252, HOST-041] CC17: a file with CRLF or BOM keeps every foreign entry; one that the host cannot read stays as it is, with a clear error', async () => {
      office = await openOffice({ market: undefined });
      const readable = {
        crlf: strict.replaceAll('\n', '\r\n'),
        bom: `\ufeff${strict}`,
        compact: JSON.stringify(foreign),
      };
      for (const [how, body] of Object.entries(readable)) {
        writeFileSync(settings(), body);
        await run([...install, ...upgrade]);
        expect([how, ofOthers(text())]).toEqual([how, foreign]);
        await run(removal);
        expect([how, ofOthers(text())]).toEqual([how, foreign]);
      }
      const unreadable = {
        comments: `// mine\n${strict}`,
        'trailing commas': strict
          .replace('"opus",', '"opus",')
          .replace(/\}\n\}\n$/, '},\n}\n')
          .replace(/\]\n\}\n$/, '],\n}\n'),
        garbage: '{ "model": ',
      };
      for (const [how, body] of Object.entries(unreadable)) {
        writeFileSync(settings(), body);
        for (const words of install) {
          const { code, stdout, stderr } = await runClaude(office.env, words, office.project);
          // The floor says that it went well, and leaves the file alone all the same.
          if (version === floor) continue;
          expect([how, code]).toEqual([how, 1]);
          expect(stdout + stderr).toContain(`Invalid JSON syntax in settings file at ${settings()}`);
        }
        await runClaude(office.env, ['plugin', 'marketplace', 'remove', 'postbell'], office.project);
        expect([how, text()]).toEqual([how, body]);
      }
    });

    it('[HOST-252, HOST-041] CC17: read-only settings in a read-only folder stay as they are, with a clear error', async () => {
      office = await openOffice({ market: undefined });
      writeFileSync(settings(), strict);
      chmodSync(settings(), 0o444);
      chmodSync(config(), 0o555);
      const plain = ['--bounding-set=-all', '--inh-caps=-all'];
      const { hostProgram } = await import('../../../tools/hosts.mjs');
      try {
        for (const words of install) {
          let said = '';
          try {
            execFileSync('setpriv', [...plain, hostProgram('claude-code') as string, ...words], {
              cwd: office.project,
              env: office.env,
              stdio: 'pipe',
              timeout: 60_000,
            });
          } catch (error) {
            const { stdout, stderr } = error as { stdout: Buffer; stderr: Buffer };
            said = stdout.toString() + stderr.toString();
          }
          // The second says that the first did not happen.
          expect(said).toMatch(/EACCES|permission|read-only|EROFS|not found/i);
        }
        expect([text(), statSync(settings()).mode & 0o777]).toEqual([strict, 0o444]);
      } finally {
        chmodSync(config(), 0o755);
      }
      expect(existsSync(path.join(config(), 'plugins', 'cache', 'postbell'))).toBe(false);
      rmSync(settings(), { force: true });
    });
  },
  bothButInCi,
);
