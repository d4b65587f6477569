/**
 * What the owner of a gateway's machine has to switch on, in the environment that the gateway is started with. The app cannot: whoever runs a workspace does
 * not thereby own the machine.
 *
 *  S1 `on` (in any case, with spaces around it) is on. Everything else is off, so that a slip of the pen never opens a door.
 *  S2 `hq audit` reads the same function as the code that opens the door.
 */

/** `HQ_AGENT_EXEC`: agents may run commands. `HQ_AGENT_WEB`: agents may read public pages. `HQ_AGENT_BOOT`: BOOT.md is read. `HQ_RUN_SHELL`: admins may run a shell. `HQ_BACKUP_ON_STOP`: one more backup when the gateway stops. */
export type Switch = 'HQ_AGENT_BOOT' | 'HQ_AGENT_EXEC' | 'HQ_AGENT_WEB' | 'HQ_BACKUP_ON_STOP' | 'HQ_RUN_SHELL'

export const isOn = (env: Readonly<Record<string, string | undefined>>, name: Switch): boolean =>
  env[name]?.trim().toLowerCase() === 'on'
