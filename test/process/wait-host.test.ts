// The listener and its host: it ends with it, and does not hold it up.

import { spawn } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stillRuns } from '../../src/compose/identity.ts';
import { startTime } from '../../src/platform/processes.ts';
import { until } from './home.ts';
import { type Listening, openListening, payload } from './listener.ts';
import { alive, answer, postbell, program } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let scene: Listening;
beforeEach(async () => {
  scene = await openListening();
});
afterEach(() => scene.home.end());

describe('postbell wait', () => {
  it('[HOST-097] watches its host: kill -9 of it ends the listener within 5 s', async () => {
    const host = scene.startHost();
    const watched = scene.listener({ CLAUDE_PID: String(host.pid) });
    await scene.armed();
    expect(watched.child.exitCode).toBeNull();
    host.kill('SIGKILL');
    const began = Date.now();
    expect((await watched.exited).code).toBe(0);
    expect(Date.now() - began).toBeLessThan(5_000);
    expect(alive(watched.pid)).toBe(false);
    const own = { pid: process.pid, start_time: startTime(process.pid) as string };
    expect([stillRuns(own), stillRuns({ ...own, start_time: '1' })]).toEqual([true, false]);
  });

  it('[HOST-097] watches the nearest ancestor called claude where the host does not name itself', async () => {
    const script = '"$0" "$1" wait & echo $!; wait';
    const host = spawn('sh', ['-c', script, process.execPath, program], {
      argv0: 'claude',
      env: { ...scene.home.env, POSTBELL_SESSION: 's1' },
      cwd: scene.home.project,
    });
    let said = '';
    host.stdout.on('data', (chunk: Buffer) => (said += String(chunk)));
    await until('it says its listener', () => said.endsWith('\n'));
    const pid = Number(said);
    scene.home.atEnd(() => alive(pid) && process.kill(pid, 'SIGKILL'));
    scene.home.atEnd(() => host.kill('SIGKILL'));
    // The pipes are the listener's as well: they close when both are gone.
    let ended = false;
    host.on('close', () => (ended = true));
    await scene.armed();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(alive(pid)).toBe(true);
    host.kill('SIGKILL');
    await until('the listener ends', () => ended, 5_000);
  });

  it('[HOST-097] counts a host that its parent leaves lying after its death as gone', async () => {
    // `sleep` never waits for the child that the shell left it.
    const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], { detached: true });
    scene.home.atEnd(() => process.kill(-(parent.pid as number), 'SIGKILL'));
    let said = '';
    parent.stdout.on('data', (chunk: Buffer) => (said += String(chunk)));
    await until('it says its child', () => said.endsWith('\n'));
    const host = Number(said);
    const watched = scene.listener({ CLAUDE_PID: String(host) });
    await scene.armed();
    expect(watched.child.exitCode).toBeNull();
    process.kill(host, 'SIGKILL');
    const began = Date.now();
    expect((await watched.exited).code).toBe(0);
    expect(Date.now() - began).toBeLessThan(5_000);
    expect(() => process.kill(host, 0)).not.toThrow();
  });

  it('ends at once where its host died before it began to look, also while its input stays open', async () => {
    const host = scene.startHost();
    host.kill('SIGKILL');
    await until('the host has gone', () => !alive(host.pid as number));
    const late = scene.listener({ CLAUDE_PID: String(host.pid) });
    expect((await late.exited).code).toBe(0);
    const second = scene.startHost();
    const slow = scene.home.start(['wait'], { ...scene.home.env, CLAUDE_PID: String(second.pid) });
    await new Promise((resolve) => setTimeout(resolve, 300));
    second.kill('SIGKILL');
    const began = Date.now();
    expect((await slow.exited).code).toBe(0);
    expect(Date.now() - began).toBeLessThan(7_000);
  });

  it('[HOST-100] leaves at once under Codex, by its environment or by what it tells a hook', async () => {
    const began = Date.now();
    const told = await postbell(
      scene.home.env,
      scene.home.project,
      ['wait'],
      JSON.stringify({ session_id: 's1', turn_id: 't1' }),
    );
    const named = await postbell(
      { ...scene.home.env, CODEX_THREAD_ID: 's1' },
      scene.home.project,
      ['wait'],
      payload,
    );
    for (const { code, stdout, stderr } of [told, named]) expect([code, stdout, stderr]).toEqual([0, '', '']);
    expect(Date.now() - began).toBeLessThan(2_000);
    const claude = scene.listener({ CODEX_THREAD_ID: 'outer', CLAUDECODE: '1' });
    await scene.armed();
    expect(claude.child.exitCode).toBeNull();
  });

  it('[HOST-128] takes the server with it where that sits on a pipe that stays open', async () => {
    const host = scene.startHost();
    const project = (await answer(scene.home.env, scene.home.project, ['send', 'x', '--json'], 'x'))
      .project as string;
    const server = await openSession(scene.home, {
      CLAUDE_CODE_SESSION_ID: 's9',
      POSTBELL_RECIPIENT: 'stuck',
      CLAUDE_PID: String(host.pid),
    });
    await liveCards(scene.home, project, 2);
    scene.listener({ CLAUDE_PID: String(host.pid), POSTBELL_SESSION: 's9' });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    host.kill('SIGKILL');
    const began = Date.now();
    await until('the server has gone', () => !alive(server.pid), 5_000);
    await liveCards(scene.home, project, 1);
    expect(Date.now() - began).toBeLessThan(5_500);
    const kept = await answer(scene.home.env, scene.home.project, ['send', 'stuck', '--json'], 'kept');
    expect(kept.recipient_presence).toBe('gone');
  });

  it('lets a host that took over the session arm its own listener though the old host died just now', async () => {
    const [old, young] = [scene.startHost(), scene.startHost()];
    const left = scene.listener({ CLAUDE_PID: String(old.pid) });
    await scene.armed();
    old.kill('SIGKILL');
    const taken = scene.listener({ CLAUDE_PID: String(young.pid) });
    expect((await left.exited).code).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(taken.child.exitCode).toBeNull();
    await scene.send('to the resumed one');
    expect((await taken.exited).code).toBe(2);
  });

  it('[HOST-098] leaves at once where nobody is attending and the host reads one prompt only, or cannot be asked', async () => {
    await scene.send('a row waits');
    await until('it is rung', () => scene.passed().rows === 1);
    // Its parent never asks how it ended: there is such a process, but no command line of it.
    const parent = spawn('sh', ['-c', 'true & echo $!; exec sleep 600']);
    scene.home.atEnd(() => parent.kill('SIGKILL'));
    const unread = await new Promise((resolve) =>
      parent.stdout.on('data', (chunk) => resolve(String(chunk))),
    );
    const oneOff = { CLAUDE_PID: String(scene.startHost().pid) };
    const unreadable = { CLAUDE_PID: String(unread).trim() };
    const unattended = { CLAUDE_CODE_SESSION_ATTENDED: '0' };
    const sdk = { CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' };
    for (const more of [
      { ...unattended, ...oneOff },
      { ...sdk, ...oneOff },
      { ...unattended, ...unreadable },
      { ...sdk, ...unreadable },
    ])
      expect(await postbell({ ...scene.home.env, ...more }, scene.home.project, ['wait'], payload)).toEqual({
        code: 0,
        stdout: '',
        stderr: '',
      });
    expect(scene.passed().cursor).toBe(0);
    const streaming = { CLAUDE_PID: String(scene.startHost('claude --input-format stream-json').pid) };
    expect((await scene.listener({ ...unattended, ...streaming }).exited).code).toBe(2);
  });
});
