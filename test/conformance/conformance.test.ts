// The suite over the bell of the product, and over bells of the other kinds on a scripted host.

import { fixture, listener } from './adapters.ts';
import { suite } from './suite.case.ts';

suite('the listener', listener);
suite('a channel', fixture('channel', 'notification_sent'));
suite('a queue', fixture('codex-queue', 'host_queued'));
suite('a prompt at a time', fixture('acp', 'host_queued'));
