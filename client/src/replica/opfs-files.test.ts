import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OpfsFiles } from './opfs-files.ts'
import { type Folder, isHeld, type SyncHandle } from './opfs-tree.ts'

/** The private file system in memory: one handle a file, a quota, and what is written is there for the next who opens it. */
class Disk {
  readonly folders = new Map<string, Map<string, { bytes: Uint8Array; held: boolean; room?: number }>>()
  quota = Number.POSITIVE_INFINITY
  /** Files that cannot be opened now. */
  readonly held = new Set<string>()
  flushed: string[] = []
  open = 0

  files(name: string) {
    const files = this.folders.get(name) ?? new Map<string, { bytes: Uint8Array; held: boolean }>()
    this.folders.set(name, files)
    return files
  }
  used(): number {
    let sum = 0
    // As in Chromium: what an open file has had is not given back before it is closed.
    for (const files of this.folders.values())
      for (const { bytes, room = 0 } of files.values()) sum += Math.max(bytes.length, room)
    return sum
  }
  folder(path = ''): Folder {
    const files = this.files(path)
    return {
      getDirectoryHandle: async (name) => this.folder(`${path}/${name}`),
      getFileHandle: async (name, options) => {
        const known = files.get(name)
        if (!known && !options?.create) throw new DOMException('none', 'NotFoundError')
        const file = known ?? { bytes: new Uint8Array(), held: false }
        files.set(name, file)
        return { createSyncAccessHandle: async () => this.#handle(name, file) }
      },
      keys: async function* () {
        yield* files.keys()
      },
    }
  }
  #handle(name: string, file: { bytes: Uint8Array; held: boolean; room?: number }): SyncHandle {
    if (file.held || this.held.has(name)) throw new DOMException('held', 'NoModificationAllowedError')
    file.held = true
    this.open++
    const resize = (size: number): void => {
      const had = Math.max(file.bytes.length, file.room ?? 0)
      if (size > had && this.used() + size - had > this.quota) throw new DOMException('full', 'QuotaExceededError')
      file.room = Math.max(size, had)
      const next = new Uint8Array(size)
      next.set(file.bytes.subarray(0, size))
      file.bytes = next
    }
    return {
      close: () => {
        if (file.held) this.open--
        file.held = false
        file.room = 0
      },
      flush: () => void this.flushed.push(name),
      getSize: () => file.bytes.length,
      read: (buffer, { at }) => {
        const part = file.bytes.subarray(at, at + buffer.length)
        buffer.set(part)
        return part.length
      },
      truncate: resize,
      write: (buffer, { at }) => {
        if (at + buffer.length > file.bytes.length) resize(at + buffer.length)
        file.bytes.set(buffer, at)
        return buffer.length
      },
    }
  }
  /** As after the end of the process: nobody holds anything. */
  reboot(): void {
    for (const files of this.folders.values())
      for (const file of files.values()) Object.assign(file, { held: false, room: 0 })
    this.open = 0
  }
}

const opened = async (disk: Disk, onLost?: () => void): Promise<OpfsFiles> => {
  const files = new OpfsFiles('db', { stock: 40, root: async () => disk.folder(), ...(onLost && { onLost }) })
  await files.openFiles()
  return files
}

const textOf = (files: OpfsFiles, path: string): string => {
  const fd = files.open(path)
  const buffer = new Uint8Array(files.fstat(fd).size)
  files.read(fd, buffer, 0, buffer.length, 0)
  files.close(fd)
  return new TextDecoder().decode(buffer)
}

/** Path and content of all there is. */
const listing = (files: OpfsFiles, folder = ''): Record<string, string> =>
  Object.assign(
    {},
    ...files.readdir(folder).map((name) => {
      const path = `${folder}/${name}`
      return (files.lstat(path).mode & 0o170000) === 0o040000 ? listing(files, path) : { [path]: textOf(files, path) }
    }),
  )

describe('files of a database in the private file system', () => {
  test('F2, F3: whatever was done, the next who opens it finds just that', async () => {
    const path = fc.constantFrom('/a', '/b', '/pg_wal/1', '/pg_wal/2', '/base/x')
    const step = fc.oneof(
      fc.record({ do: fc.constant('write' as const), path, text: fc.string({ minLength: 1, maxLength: 30 }) }),
      fc.record({ do: fc.constant('unlink' as const), path }),
      fc.record({ do: fc.constant('move' as const), path, to: path }),
      fc.record({ do: fc.constant('sync' as const) }),
      fc.record({ do: fc.constant('reopen' as const), tidy: fc.boolean() }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const disk = new Disk()
        let files = await opened(disk)
        const model: Record<string, string> = {}
        for (const folder of ['/pg_wal', '/base']) files.mkdir(folder, { mode: 0o040700 })
        for (const each of steps) {
          if (each.do === 'write') {
            files.writeFile(each.path, '', { mode: 0o100600 })
            files.truncate(each.path, 0)
            files.writeFile(each.path, each.text)
            model[each.path] = each.text
          } else if (each.do === 'unlink' && each.path in model) {
            files.unlink(each.path)
            delete model[each.path]
          } else if (each.do === 'move' && each.path in model) {
            files.rename(each.path, each.to)
            const text = model[each.path] ?? ''
            delete model[each.path]
            model[each.to] = text
          } else if (each.do === 'sync') await files.syncToFs()
          else if (each.do === 'reopen') {
            if (each.tidy) await files.closeFs()
            disk.reboot()
            files = await opened(disk)
          }
          expect(listing(files)).toEqual(model)
        }
      }),
      { numRuns: 60 },
    )
  })

  test('F2: a journal that ends anywhere opens as what it was up to there; the other one stands in for a head that is cut', async () => {
    const disk = new Disk()
    const files = await opened(disk)
    for (let index = 0; index < 5; index++) files.writeFile(`/f${index}`, 'x', { mode: 0o100600 })
    await files.closeFs()
    const journal = disk.files('/db').get('journal-0')
    if (!journal) throw new Error('no journal')
    const whole = journal.bytes
    const head = whole.indexOf(10) + 1
    for (let end = head; end <= whole.length; end++) {
      disk.reboot()
      journal.bytes = whole.slice(0, end)
      const lines = journal.bytes.filter((byte) => byte === 10).length - 1
      const again = await opened(disk)
      expect(again.readdir('/')).toEqual(['f0', 'f1', 'f2', 'f3', 'f4'].slice(0, lines))
      await again.closeFs()
    }
    // A turn that was cut short: its head is not whole.
    disk.reboot()
    journal.bytes = whole
    disk.files('/db').set('journal-1', { bytes: new TextEncoder().encode('{"generation":9,"tr'), held: false })
    expect((await opened(disk)).readdir('/')).toHaveLength(5)
    // Neither is: said, never taken for a new database.
    disk.reboot()
    journal.bytes = whole.slice(0, head - 5)
    await expect(opened(disk)).rejects.toThrow('cannot be read')
  })

  test('F1: files that another still holds reject the opening, which then holds none itself; later it opens', async () => {
    const disk = new Disk()
    const files = await opened(disk)
    files.writeFile('/a', 'kept', { mode: 0o100600 })
    await files.closeFs()
    for (const name of [...disk.files('/db/data').keys()].slice(0, 50).concat('journal-0', 'reserve')) {
      disk.held.clear()
      disk.held.add(name)
      const refused = await opened(disk).catch((error: unknown) => error)
      expect(isHeld(refused)).toBe(true)
      expect(disk.open).toBe(0)
    }
    disk.held.clear()
    expect(textOf(await opened(disk), '/a')).toBe('kept')
  })

  test('F4: with no room data may not grow, what is there can be written over, and the log has the reserve; with room again all goes on', async () => {
    const disk = new Disk()
    const files = await opened(disk)
    files.mkdir('/pg_wal', { mode: 0o040700 })
    files.writeFile('/a', 'aaaa', { mode: 0o100600 })
    files.writeFile('/pg_wal/1', 'log', { mode: 0o100600 })
    expect(files.full).toBe(false)
    disk.quota = disk.used()
    const write = (path: string, bytes: Uint8Array, at: number): number => {
      const fd = files.open(path)
      try {
        return files.write(fd, bytes.buffer as unknown as Uint8Array, 0, bytes.length, at)
      } finally {
        files.close(fd)
      }
    }
    expect(() => write('/a', new Uint8Array(10), 4)).toThrow('ENOSPC')
    expect(files.full).toBe(true)
    expect(write('/a', new TextEncoder().encode('bb'), 0)).toBe(2)
    expect(write('/pg_wal/1', new Uint8Array(1_000_000), 3)).toBe(1_000_000)
    files.writeFile('/pg_wal/2', 'more log', { mode: 0o100600 })
    await files.syncToFs()
    expect(files.full).toBe(true)
    expect(() => write('/a', new Uint8Array(1), 4)).toThrow('ENOSPC')
    expect(textOf(files, '/a')).toBe('bbaa')

    await files.closeFs()
    disk.reboot()
    const again = await opened(disk)
    expect(again.full).toBe(true)
    expect(textOf(again, '/pg_wal/2')).toBe('more log')
    disk.quota = Number.POSITIVE_INFINITY
    await expect.poll(() => again.syncToFs().then(() => again.full), { timeout: 5_000 }).toBe(false)
    again.writeFile('/b', 'new', { mode: 0o100600 })
    expect(textOf(again, '/b')).toBe('new')
  })

  test('F4: a log that finds no room at all is said to be lost; what was there before is there when it is opened anew', async () => {
    const disk = new Disk()
    let lost = 0
    const files = await opened(disk, () => lost++)
    files.mkdir('/pg_wal', { mode: 0o040700 })
    files.writeFile('/pg_wal/1', 'log', { mode: 0o100600 })
    await files.syncToFs()
    disk.quota = disk.used()
    const fd = files.open('/pg_wal/1')
    const more = new Uint8Array(9 * 1024 * 1024)
    expect(() => files.write(fd, more.buffer as unknown as Uint8Array, 0, more.length, 3)).toThrow('ENOSPC')
    expect([lost, files.full]).toEqual([1, true])
    await files.closeFs()
    disk.reboot()
    disk.quota = Number.POSITIVE_INFINITY
    const again = await opened(disk)
    expect([textOf(again, '/pg_wal/1'), again.full]).toEqual(['log', false])
  })

  test('F5: what a checkpoint counts on is flushed before it is said to be done', async () => {
    const disk = new Disk()
    const files = await opened(disk)
    files.mkdir('/global', { mode: 0o040700 })
    for (const name of ['/a', '/b', '/global/pg_control']) files.writeFile(name, 'x', { mode: 0o100600 })
    await files.syncToFs()
    files.writeFile('/a', 'y')
    files.writeFile('/b', 'y')
    disk.flushed = []
    files.writeFile('/global/pg_control', 'z')
    expect(disk.flushed).toHaveLength(2)
  })
})
