import { mergeConfig } from 'vitest/config';
import base from './vitest.config.ts';

/** Hundreds of killed processes, apart from what would be slowed by them. */
const config = mergeConfig(base, {});
config.test.include = ['test/kills/**/*.test.ts'];
config.test.exclude = [];

export default config;
