// One line to the router that runs in a home, and its answer.

import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';

export function ask(data: string, frame: Record<string, unknown>): Promise<Record<string, unknown>> {
  const auth_token = readFileSync(path.join(data, 'router.token'), 'utf8').trim();
  return new Promise((resolve, reject) => {
    const socket = connect(path.join(data, 'router-v1.sock'));
    let text = '';
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      text += String(chunk);
      if (!text.includes('\n')) return;
      socket.destroy();
      resolve(JSON.parse(text) as Record<string, unknown>);
    });
    socket.write(`${JSON.stringify({ v: 1, hops: 0, request_id: 'r1', auth_token, ...frame })}\n`);
  });
}
