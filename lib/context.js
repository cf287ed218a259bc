/**
 * The context that bodies and hooks get: a plain object that is also usable as the `Db`.
 *
 * Promises: our own keys come first, everything else answers as the `Db` does, methods bound to it;
 * `context instanceof Db` holds. So a file written for migrate-mongo takes it for its `db`.
 */

/** @import { Db } from 'mongodb' */

/**
 * @template {{ db: Db }} T
 * @param {T} own
 * @returns {T & Db}
 */
export function createContext(own) {
  const { db } = own
  /** @type {Map<PropertyKey, Function>} */
  const bound = new Map()

  /** @param {PropertyKey} key */
  const member = (key) => {
    const value = Reflect.get(db, key, db)
    if (typeof value !== 'function' || key === 'constructor') return value
    const method = bound.get(key) ?? value.bind(db)
    bound.set(key, method)
    return method
  }

  const proxy = new Proxy(own, {
    get: (target, key, receiver) =>
      Object.hasOwn(target, key) ? Reflect.get(target, key, receiver) : member(key),
    has: (target, key) => Object.hasOwn(target, key) || Reflect.has(db, key),
    getPrototypeOf: () => Object.getPrototypeOf(db),
  })
  return /** @type {T & Db} */ (proxy)
}
