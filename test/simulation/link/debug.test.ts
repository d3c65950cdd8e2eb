import { it } from 'vitest';
import { simulateLink } from './run.ts';

it('x', async () => {
  const o = await simulateLink(Number(process.env.A), Number(process.env.S ?? 4000), {
    start: (world: any) => {
      (globalThis as any).W = world;
    },
    end: (world: any) => {
      const m = /msg_\w+/.exec(world.failure?.text ?? '')?.[0];
      console.log(world.failure);
      for (const x of world.machines) {
        const all = (sql: string, ...p: any[]) => x.disk.all(sql, ...p);
        console.log(
          x.name,
          x.key.slice(0, 8),
          new Date(x.nowMs()).toISOString(),
          x.relays.join(),
          'peers',
          x.peers.map((p: any) => p.name).join(),
          JSON.stringify({
            place: all('SELECT * FROM place'),
            asked: all('select * from pair_asked'),
            req: all('select peer_key,name,device,request_id from pair_request'),
            jobs: all('select kind,peer_key,queue,next_ms,last_error,attempts from control_job'),
            dev: all('SELECT peer_key, device, relays, heard_ms, looked_ms, age_ms, gone FROM peer_device'),
            gate: all('select * from gate_refusal'),
            ...(m
              ? {
                  out: all(
                    'SELECT o.*, m.created_at FROM outbox o join message m using (message_id) WHERE message_id = ?',
                    m,
                  ),
                  post: all('SELECT * FROM outbox_post WHERE message_id = ?', m),
                  rec: all(
                    'select r.* from receipt r join delivery d using(delivery_id) where d.message_id=?',
                    m,
                  ),
                }
              : {}),
          }),
        );
      }
    },
  } as any);
  if (process.env.V) console.log(o.trace.join('\n'));
}, 600000);
