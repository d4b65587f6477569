import { defineConfig } from 'vitest/config'

/** `npm run test:openclaw`: the real OpenClaw from npm (650 MB), which is installed by the test itself. */
export default defineConfig({
  test: {
    include: ['tests/openclaw.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 60_000,
    retry: process.env['CI'] ? 1 : 0,
  },
})
