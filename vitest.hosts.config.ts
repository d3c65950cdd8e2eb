import { defineConfig } from 'vitest/config';

/** Runs of real agent hosts against a model server on loopback: `node tools/hosts.mjs` installs the hosts. */
export default defineConfig({
  define: { __POSTBELL_VERSION__: JSON.stringify('0.0.0') },
  test: {
    include: ['test/hosts/**/*.test.ts'],
    // Minutes of measuring, which gates nothing.
    exclude: process.env.CI ? ['test/hosts/claude-code/{states,storm}.test.ts'] : [],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // A host starts many processes: two side by side starve one another, and timings mean nothing.
    fileParallelism: false,
  },
});
