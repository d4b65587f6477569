import { defineConfig } from 'vitest/config'

/** Whole minutes each: killed processes, months, networks that go wrong, the product's own tests once more over Electric. */
const SLOW = [
  'tests/chaos/*.test.ts',
  'tests/electric.test.ts',
  'tests/month-offline.test.ts',
  'tests/slow-readers.test.ts',
  'tests/transports.test.ts',
]

/** CI's machine is shared: what starts whole programs and browsers may have one more try there, which the report names (`retry x1`). */
const retry = process.env['CI'] ? 1 : 0

/**
 * Three projects, all in Node.
 *  - `unit`   `*.test.ts`: pure or in-process (PGlite included).
 *  - `system` `*.pg.test.ts`, `*.browser.test.ts` and `tests/`: real Postgres, real processes, a real browser.
 *             One file at a time, because each starts whole programs.
 *  - `slow`   the same, but long: `npm run test:slow`, not `npm test`.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{shared,sync-server,gateway-node,client,scripts}/**/*.test.ts'],
          exclude: ['**/node_modules/**', '**/*.pg.test.ts', '**/*.browser.test.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'system',
          include: [
            '{shared,sync-server,gateway-node,client}/**/*.pg.test.ts',
            '{shared,sync-server,gateway-node,client}/**/*.browser.test.ts',
            'tests/**/*.test.ts',
          ],
          // Containers and OpenClaw have runs of their own: vitest.docker.config.ts, vitest.openclaw.config.ts.
          exclude: [
            '**/node_modules/**',
            'tests/docker.test.ts',
            'tests/containers.test.ts',
            'tests/openclaw.test.ts',
            ...SLOW,
          ],
          retry,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: 1,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'slow',
          include: SLOW,
          retry,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: 1,
          fileParallelism: false,
        },
      },
    ],
  },
})
