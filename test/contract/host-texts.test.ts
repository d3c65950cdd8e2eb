// What pages and texts say of hosts: what each can and cannot, in one place, and nothing that contradicts it.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { triedAgents } from '../../src/hosts/acp/known.ts';
import { codexNotice } from '../../src/hosts/codex/notice.ts';
import { describeError, errorCodes, Refusal } from '../../src/protocol/errors.ts';
import { claudeVersions, codexVersions, standingOf } from '../../src/protocol/host-versions.ts';
import { adapterKinds } from '../../src/protocol/session.ts';
import { commands } from '../../src/surfaces/cli/commands.ts';
import { helpFor, overview } from '../../src/surfaces/cli/help.ts';
import { instructions } from '../../src/surfaces/mcp/server.ts';
import { tools } from '../../src/surfaces/mcp/tools.ts';
import { hosts } from '../../tools/hosts.mjs';
import { root } from '../process/postbell.ts';

const readText = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const flat = (text: string): string => text.replaceAll(/\s+/g, ' ');
const pages = [
  'README.md',
  'CHANGELOG.md',
  ...['docs', 'plugins'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md') && !/^(?:spec|decisions)\//.test(file))
      .map((file) => path.join(folder, file)),
  ),
];
const words = Object.keys(commands).map((one) => one.split(' '));
const texts = new Map<string, string>([
  ...pages.map((file) => [file, flat(readText(file))] as const),
  ...tools.map(({ name, description }) => [`tool ${name}`, flat(description)] as const),
  ['instructions', flat(instructions)],
  ['help', overview('1')],
  ...words.map(([one = '', two = '']) => [`help ${one} ${two}`, flat(helpFor(one, two) ?? '')] as const),
  ...errorCodes.map((code) => [`hint of ${code}`, describeError(new Refusal(code, '')).hint] as const),
  ['notice of Codex', flat(codexNotice({ text: '', covered: [] }))],
]);

/** A part of the page on hosts, up to the next of its level. */
function section(title: string): string {
  const [, text] =
    new RegExp(`\\n## ${title}\\n([\\s\\S]*?)(?=\\n## |$)`).exec(readText('docs/hosts.md')) ?? [];
  if (text === undefined) throw new Error(`docs/hosts.md has no section ${title}`);
  return flat(text);
}
const matrix = section('Which host can what');

describe('what no host can be promised', () => {
  const title = 'What no host can be promised';

  it('[HOST-282] stands in one place', () => {
    const places = pages.filter((file) => new RegExp(`^#+ ${title}$`, 'm').test(readText(file)));
    expect(places).toEqual(['docs/hosts.md']);
    const said = section(title);
    for (const topic of [
      /session whose host does not run is not woken/,
      /host without an adapter is never rung: its agent polls, watches or receives/,
      /notice may come twice/,
      /That a model reads what it was told of/,
    ])
      expect(said).toMatch(topic);
    expect(texts.get('README.md')).toContain('docs/hosts.md#what-no-host-can-be-promised');
  });

  it.each([
    [
      'a closed session wakes',
      /\bwakes? (?:up )?(?:a |an |any |the |your )?(?:closed|stopped|ended) (?:session|thread|agent|host)/i,
    ],
    [
      'a session is woken whether or not it runs',
      /woken (?:even|also) (?:if|when|where) (?:it|its host|the host) (?:is closed|does not run|has ended)/i,
    ],
    ['any client is woken', /\b(?:wakes?|rings?) (?:any|every) (?:MCP client|host|agent|client)\b/i],
    [
      'a notice comes once',
      /\b(?:notice|message|ring)s? (?:comes?|arrives?|is delivered|are delivered) (?:only |just |exactly )once\b|exactly[- ]once/i,
    ],
    [
      'an acceptance is a reading',
      /(?:accepted|acceptance|host_accept)`? (?:means|proves|shows) (?:that )?(?:it was |the (?:model|agent) )?(?:read|saw|seen|understood|done)/i,
    ],
    [
      'a model will read or answer',
      /\b(?:model|agent|recipient|it) (?:will|always) (?:reads?|answers?|acts?)\b/i,
    ],
  ])('[HOST-282] no text says that %s', (_what, claim) => {
    expect(texts.size).toBeGreaterThan(40);
    const claims = [...texts].flatMap(([name, text]) => {
      const found = claim.exec(text)?.[0];
      return found === undefined ? [] : [`${name}: ${found}`];
    });
    expect(claims).toEqual([]);
  });

  it('the lint finds what it looks for', () => {
    expect('Postbell wakes a closed session').toMatch(/\bwakes? (?:a )?closed session/);
  });
});

describe('the table of hosts', () => {
  it('[MSG-169] says that an MCP client without an adapter is not woken, and how it gets its mail', () => {
    const row = matrix.slice(matrix.indexOf('| any other MCP client'));
    expect(row).toMatch(
      /^\| any other MCP client \| nothing \| – \| it is not woken: it polls \(`message poll`\), watches \(`message watch`\) or receives \(`receive_messages`\)/,
    );
  });

  it('has a line for each kind of adapter, with the versions that were tested and no others', () => {
    const rows = matrix.split(' | | ').join('\n');
    for (const host of [
      'Claude Code, with the plugin',
      'Claude Code, with a channel',
      'Codex, an ordinary thread',
      'Codex, run by us',
      'any ACP agent, run by us',
      'any other MCP client',
    ])
      expect(rows).toContain(host);
    expect(adapterKinds).toHaveLength(6);
    const named = new Set(matrix.match(/\b\d+\.\d+\.\d+\b/g));
    const known = [claudeVersions, codexVersions].flatMap(({ tested, floor }) => [tested, floor]);
    expect(named).toEqual(new Set([...known, ...Object.values(triedAgents)]));
  });

  it('is of the versions that the tests install', () => {
    expect(hosts['claude-code'].versions).toEqual([claudeVersions.tested, claudeVersions.floor]);
    expect(hosts.codex.versions).toEqual([codexVersions.tested]);
    const agents = (['gemini-cli', 'opencode', 'codex-acp', 'claude-agent-acp'] as const).map(
      (name) => hosts[name].versions[0],
    );
    expect(new Set(Object.values(triedAgents))).toEqual(new Set(agents));
    expect(standingOf('2.1.250', claudeVersions)).toBe('limited');
    expect(standingOf('2.1.100', claudeVersions)).toBe('refused');
    expect(standingOf('3.0.0', claudeVersions)).toBe('newer');
  });
});

describe('texts about Codex', () => {
  it('[HOST-159] name the ordinary CLI as the supported path, and count the rest by discover and a result that was seen', () => {
    const said = section('Codex');
    expect(said).toContain('The supported path is the ordinary `codex` in a terminal.');
    expect(said).toMatch(
      /Threads of Codex Desktop, and tasks that nobody is attached to, may work as well: one counts as reachable only when that exact session is in `postbell message discover` and you saw the result of a message to it/,
    );
    for (const [name, text] of texts)
      expect(
        `${name}: ${/(?:Desktop|unattached)[^.]{0,60}(?:cannot|does not|do not|never|un)(?: be)? ?(?:work|supported|reach|rung)/i.exec(text)?.[0]}`,
      ).toBe(`${name}: undefined`);
  });

  it('[HOST-176] that send to its shell name the command, and say that the tools work where the thread is known', () => {
    const sending = [...texts].filter(([, text]) => /Codex shell|shell of (?:such a mode|Codex)/i.test(text));
    expect(sending.map(([name]) => name).sort()).toEqual([
      'docs/hosts.md',
      'hint of intended_for_other_session',
    ]);
    for (const [, text] of sending) {
      expect(text).toContain('postbell message intake');
      expect(text).toMatch(/tools[^.;]* wher(?:e|ever) (?:its|the) thread is known/);
    }
  });
});
