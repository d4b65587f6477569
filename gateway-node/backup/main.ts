/** `npm run gateway:restore [-- FILE]`: a gateway from its backup (restore.ts), in HQ_GATEWAY_HOME. Exit codes: 0 restored · 1 a defect · 2 something to put right · 3 a gateway runs here. */
import { runRestore } from '../cli/backup.ts'

process.exitCode = await runRestore(process.argv.slice(2), process.env)
