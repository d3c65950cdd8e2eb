// The suite over the bells of the product, and over bells of the other kinds on a scripted host.

import { acp, channel, listener, queue } from './adapters.ts';
import { managed } from './fixture-managed.ts';
import { suite } from './suite.case.ts';

suite('the listener', listener);
suite('the channel', channel);
suite('a turn of an app-server', managed);
suite('the queue of Codex', queue);
suite('a prompt at a time', acp);
