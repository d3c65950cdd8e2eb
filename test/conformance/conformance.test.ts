// The suite over the bells of the product, and over bells of the other kinds on a scripted host.

import { channel, fixture, listener } from './adapters.ts';
import { suite } from './suite.case.ts';

suite('the listener', listener);
suite('the channel', channel);
suite('a queue', fixture('codex-queue', 'host_queued'));
suite('a prompt at a time', fixture('acp', 'host_queued'));
