/** `npm run build`: the web application, into client/dist. Everything else runs as it stands. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const { status } = spawnSync(process.execPath, ['client/scripts/build.ts'], { cwd: root, stdio: 'inherit' })
process.exit(status ?? 1)
