import { defineConfig } from 'vitest/config'

/** `npm run test:docker`: the containers alone, because they take minutes and need root. */
export default defineConfig({
  test: {
    include: ['tests/docker.test.ts', 'tests/containers.test.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
  },
})
