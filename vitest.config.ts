import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/hosts/**'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Two cores: process tests measured beside each other starve one another.
    maxWorkers: 2,
  },
});
