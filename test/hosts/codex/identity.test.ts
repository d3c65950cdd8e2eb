// Who calls, in a real Codex: by the thread that Codex names with each call, in its sandboxes, and by the shell's environment.

import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { program } from '../../process/postbell.ts';
import { type CodexOffice, openCodexOffice } from '../codex.ts';
import { describeWithHost } from '../installed.ts';
import { result, says, untilConnected } from './server.ts';

const handled = { timeout: 20_000, interval: 100 };

/** The call that a model is asked to make. */
const callOf = (tool: string, args: object): string => `call ${tool} ${JSON.stringify(args)}`;

/** What the thread's model got back from the tools of its last turn. */
const outputs = (office: CodexOffice, thread: string): string =>
  (office.model.requestsOf(thread).at(-1)?.body.input ?? [])
    .filter(({ type }) => type === 'function_call_output')
    .map(({ output }) => (typeof output === 'string' ? output : JSON.stringify(output)))
    .join('\n');

const send = (office: CodexOffice, text: string, session: string) => office.sendMeant('dave', session, text);

describeWithHost('codex', 'identity', () => {
  describe('without a sandbox', () => {
    let office: CodexOffice;
    beforeAll(async () => {
      office = await openCodexOffice();
    });
    afterAll(() => office.end());

    it('[HOST-138, MSG-050] two threads have servers of their own; each takes in what is meant for it, and nothing else', async () => {
      const dave = { POSTBELL_RECIPIENT: 'dave' };
      const one = await office.open(undefined, [], dave);
      const two = await office.open(undefined, [], dave);
      expect(one.thread).not.toBe(two.thread);
      await expect.poll(async () => (await office.cards()).length, handled).toBe(2);
      const sent = await send(office, 'for the second alone', two.thread);
      // The second was rung for it; the first may not take it in, though it has the same name.
      const scope = { project: sent.project, recipient: 'dave', message_id: sent.message_id };
      const intake = {
        action: 'intake',
        ...scope,
        state: 'ingested',
        idempotency_key: 'one',
      };
      await one.terminal.type(callOf('message', intake));
      await one.terminal.waitForScreen(/intended_for_other_session/, 15_000);
      expect(outputs(office, one.thread)).toContain('intended_for_other_session');
      await expect.poll(async () => (await office.facts(sent)).kinds, handled).toContain('intake ingested');
      const { receipts } = await office.facts(sent);
      const taken = receipts.find(({ receipt_kind }) => receipt_kind === 'intake');
      expect(taken?.caller_session).toBe(two.thread);
      // What binds is no tool of a model's: the servers stay whose they are.
      const offered = (office.model.requestsOf(one.thread).at(-1)?.body.tools ?? []).flatMap(
        ({ tools = [] }) => tools.map(({ name }) => name),
      );
      expect(offered).toContain('receive_messages');
      expect(offered).not.toContain('bind_codex_session');
      await one.terminal.type(callOf('bind_codex_session', { thread_id: two.thread }));
      await expect.poll(() => outputs(office, one.thread), handled).toMatch(/unsupported|unknown|not found/i);
      await one.terminal.type(callOf('get_my_session_id', {}));
      await expect.poll(() => outputs(office, one.thread), handled).toContain(`"session_id":"${one.thread}"`);
      // Only its hook told the server where the thread works.
      expect(outputs(office, one.thread)).toContain(`"project":"${sent.project}"`);
      await Promise.all([one.terminal.end(), two.terminal.end()]);
    });

    it('[HOST-256] CX3: on one app-server two threads are bound by their hooks to servers of their own, and a second bind with another id is refused', async () => {
      const child = await office.serve();
      const server = await untilConnected(
        path.join(office.codexHome, 'app-server-control/app-server-control.sock'),
      );
      office.atEnd(() => server.close());
      const threads: string[] = [];
      for (const _ of [1, 2]) {
        const { thread } = await result(server, 'thread/start', { cwd: office.project });
        const { id } = thread as { id: string };
        await result(server, 'turn/start', { threadId: id, input: says('hello') });
        await expect.poll(() => office.card(id), handled).toBeDefined();
        threads.push(id);
      }
      const asked = async (threadId: string, tool: string, args: object) => {
        const call = { threadId, server: 'postbell', tool, arguments: args };
        const { structuredContent } = await result(server, 'mcpServer/tool/call', call);
        return structuredContent as Record<string, unknown>;
      };
      const bind = (of: string, thread_id: string) =>
        asked(of, 'bind_codex_session', { thread_id, cwd: office.project });
      const known = () =>
        Promise.all(threads.map(async (id) => (await asked(id, 'get_my_session_id', {})).session_id));
      expect(await known()).toEqual(threads);
      const [one, two] = threads as [string, string];
      for (const [own, other] of [
        [one, two],
        [two, one],
      ] as const) {
        expect(await bind(own, own)).toEqual({});
        expect(await bind(own, other)).toMatchObject({ error: { code: 'session_identity_conflict' } });
      }
      expect(await known()).toEqual(threads);
      server.close();
      child.kill('SIGTERM');
      await new Promise((resolve) => child.once('exit', resolve));
    });

    it('[HOST-142] the command line in a shell of Codex speaks for its thread', async () => {
      const run = `run ${process.execPath} ${program} message discover --project x; env | grep -c ^CODEX_THREAD_ID=`;
      const { thread, code } = await office.exec(run);
      expect(code).toBe(0);
      expect(outputs(office, thread)).toMatch(/\{"cards":\[\]\}\s*1/);
      const sent = await send(office, 'by the shell', thread);
      const words = ['message', 'intake', '--project', sent.project, '--recipient', 'dave'];
      const more = ['--message-id', sent.message_id, '--state', 'fetched'];
      const command = [process.execPath, program, ...words, ...more, '--idempotency-key', 'shell'].join(' ');
      const again = await office.codex(['exec', 'resume', thread, '--skip-git-repo-check', `run ${command}`]);
      expect(again.code).toBe(0);
      const { receipts } = await office.facts(sent);
      expect(receipts.find(({ receipt_kind }) => receipt_kind === 'intake')?.caller_session).toBe(thread);
    });

    it('[HOST-145] two terminals on one server with one variable: neither adopts it, and both are told', async () => {
      const server = await office.serve({ POSTBELL_RECIPIENT: 'whoever started it' });
      const one = await office.open();
      const two = await office.open();
      for (const { thread } of [one, two]) {
        await expect
          .poll(() => office.card(thread), handled)
          .toMatchObject({ principal_id: `codex-thread-${thread}` });
        const [first] = office.model.requestsOf(thread);
        expect(office.model.text(first as never)).toContain('POSTBELL_RECIPIENT ignored');
      }
      await Promise.all([one.terminal.end(), two.terminal.end()]);
      server.kill('SIGTERM');
      await new Promise((resolve) => server.once('exit', resolve));
    });
  });

  describe('in a sandbox', () => {
    let office: CodexOffice;
    afterEach(() => office.end());

    it('[HOST-262] CX9: an intended message is read, answered and taken in through the tools, without approval', async () => {
      for (const sandbox of ['workspace-write', 'read-only'] as const) {
        office = await openCodexOffice({ sandbox, below: '/var/tmp' });
        const { thread, terminal } = await office.open(undefined, [], { POSTBELL_RECIPIENT: 'dave' });
        await expect.poll(() => office.card(thread), handled).toBeDefined();
        const sent = await send(office, 'tell me: I have it', thread);
        await terminal.waitForScreen(/mail handled/, 20_000);
        expect((await office.facts(sent)).kinds).toEqual(
          expect.arrayContaining(['intake ingested', 'ack acknowledged']),
        );
        expect(await terminal.screen()).not.toMatch(/requires approval/);
        if (sandbox === 'workspace-write') await office.end();
      }
    });

    it('[HOST-197, HOST-265] CX12: a shell in the sandbox is told to use the tools, and never that nothing waits; the tools work', async () => {
      office = await openCodexOffice({ sandbox: 'workspace-write', below: '/var/tmp' });
      const { project, message_id } = await office.send('dave', 'SENTINEL of dave');
      const run = (...words: string[]): string => [process.execPath, program, ...words].join(' ');
      const inbox = run('inbox', 'receive', '--project', project, '--recipient', 'dave');
      const scope = ['--project', project, '--recipient', 'dave', '--message-id', message_id];
      const key = ['--state', 'fetched', '--idempotency-key', 'k'];
      const refused = [
        run('message', 'intake', ...scope, ...key),
        run('message', 'discover', '--project', project),
      ];
      const { thread } = await office.exec(`run ${[inbox, ...refused].join('; ')}`);
      const said = outputs(office, thread);
      // What can be read there is read truly; what cannot be done says where it can.
      expect(said).toMatch(/SENTINEL of dave|postbell: store_unreadable/);
      expect(said).toMatch(/postbell: store_un(writable|readable): .*use the Postbell tools/);
      expect(said).toMatch(/postbell: router_unreachable: .*use the Postbell tools/);
      expect(said).not.toContain('"messages":[]');
      const scoped = { action: 'intake', project, recipient: 'dave', message_id };
      const again = await office.exec(
        callOf('message', { ...scoped, state: 'fetched', idempotency_key: 'k' }),
      );
      expect(outputs(office, again.thread)).toContain('"receipt_kind":"intake"');
    });
  });
});
