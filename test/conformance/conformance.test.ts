// The suite over the bells of the product, and over bells of the other kinds on a scripted host.

import { acp, channel, listener, queue } from './adapters.ts';
import { duties } from './duties.case.ts';
import { managed } from './fixture-managed.ts';
import { suite } from './suite.case.ts';

const bells = {
  'the listener': listener,
  'the channel': channel,
  'a turn of an app-server': managed,
  'the queue of Codex': queue,
  'a prompt at a time': acp,
};

for (const [name, bell] of Object.entries(bells)) {
  suite(name, bell);
  duties(name, bell);
}
