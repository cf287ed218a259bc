/**
 * Runs and rehearsals: the core with the host that answers it.
 */
import { cautions } from './cautions.js'
import { closing } from './closing.js'
import { showValue } from './config/problems.js'
import { replyValue } from './engine.js'
import { InvalidArgumentError, RunCancelledError } from './errors.js'
import { lateHost } from './late-host.js'
import { nothingText, rehearsalText } from './reporter.js'
import { createCauses } from './thrown.js'

/** @import { RunReport, RunRequest, StatusRow } from './contract.d.ts' */
/** @import { Core } from './core.js' */
/** @import { Engine } from './engine.js' */

/**
 * @param {Engine} engine
 * @param {RunRequest} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<RunReport>}
 */
export async function run(engine, request, signal) {
  const { core, logger, report } = engine
  const { config } = engine.resolved
  const causes = createCauses()
  const fresh = request.command === 'redo'
  const server = async () => replyValue(engine, await core.connect(), causes)
  const host = lateHost({ config, logger, causes, emit: report, fresh, server })
  for (const event of cautions(config)) host.emit(event)
  const result = await closing(
    () =>
      cancellable(core, signal, async () => {
        return replyValue(engine, await core.run(request, host), causes)
      }),
    () => host.close(),
    report,
  )
  engine.onReport?.(result)
  if (result.results.length === 0) logger?.info(nothingText(request.command))
  return result
}

/**
 * @param {Engine} engine
 * @param {RunRequest} request
 * @returns {Promise<StatusRow[]>} what `run` would do, in its order
 */
export async function rehearse(engine, request) {
  const { core, logger, report } = engine
  const causes = createCauses()
  const { config } = engine.resolved
  const host = lateHost({ config, logger, causes, emit: report })
  const rows = await replyValue(engine, await core.rehearse(request, host), causes)
  logger?.info(rehearsalText(request.command, rows.length))
  return rows
}

/**
 * @template T
 * @param {Core} core
 * @param {AbortSignal | undefined} signal
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function cancellable(core, signal, work) {
  const cancel = () => core.cancel()
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidArgumentError(`\`signal\` must be an AbortSignal, not ${showValue(signal)}`)
  }
  if (signal?.aborted) {
    throw new RunCancelledError('The run was cancelled before it began', { cause: signal.reason })
  }
  signal?.addEventListener('abort', cancel)
  try {
    return await work()
  } catch (error) {
    if (error instanceof RunCancelledError && signal?.aborted) error.cause = signal.reason
    throw error
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
}
