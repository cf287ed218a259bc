/**
 * Processes whose wall clock is wrong, by libfaketime (Debian package `faketime`), where it is there.
 */
import { existsSync } from 'node:fs'

const folders = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
  '/usr/lib64',
  '/usr/lib',
]
const library =
  process.env.MMK_TEST_FAKETIME ??
  folders.map((folder) => `${folder}/faketime/libfaketimeMT.so.1`).find((path) => existsSync(path))

/** Why a test that needs it is skipped; `false` when it is there. */
export const noFaketime = library === undefined && 'libfaketime is not installed'

/**
 * @param {`${'+' | '-'}${number}m`} offset
 * @returns {NodeJS.ProcessEnv} for a process whose clock is that far off. Monotonic clocks stay right.
 */
export const clockOff = (offset) => ({
  LD_PRELOAD: library,
  FAKETIME: offset,
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
})
