import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8')) as {
  version: string;
};

export default defineConfig({
  define: { __POSTBELL_VERSION__: JSON.stringify(version) },
  // As the bundler does it: a migration is its text.
  plugins: [
    {
      name: 'sql-as-text',
      transform: (text, id) => (id.endsWith('.sql') ? `export default ${JSON.stringify(text)}` : undefined),
    },
  ],
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/hosts/**', 'test/kills/**'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Two cores, and tests that wait a third of their time: more of them starve one another.
    maxWorkers: 3,
  },
});
