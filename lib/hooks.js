/**
 * Calls one of the user's hooks with 1.x's arguments.
 */

/** @import { HookCall } from './contract.d.ts' */
/** @import { HookContext, MigrationHooks } from '../index.d.ts' */
/** @import { Causes } from './thrown.js' */

/**
 * @param {HookCall} call
 * @param {MigrationHooks} hooks
 * @param {HookContext} context
 * @param {Causes} causes where `onError` finds the value that was thrown
 * @returns {Promise<unknown>}
 */
export async function runHook(call, hooks, context, causes) {
  switch (call.hook) {
    case 'beforeAll':
    case 'afterAll':
      return hooks[call.hook]?.(context)
    case 'beforeEach':
      return hooks.beforeEach?.(call.name, context)
    case 'afterEach':
      return hooks.afterEach?.(call.name, call.durationMs, context)
    case 'onError':
      return hooks.onError?.(call.name, causes.get(call.causeId), context)
  }
}
