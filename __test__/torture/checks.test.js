/** The checker of the torture sees what it is for: each fault is planted in a sound history. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../scripts/torture/checks/index.js'
import { armed, effect, entry, fact, lease, line, oldLock, soundStory } from './story.js'

/**
 * @param {(story: ReturnType<typeof soundStory>) => void} spoil
 * @returns {Record<string, string[]>} violations by check, without the checks that found none
 */
function violationsAfter(spoil) {
  const story = soundStory()
  spoil(story)
  story.history.sort((a, b) => a.t - b.t)
  const found = check(story).filter(({ violations }) => violations.length > 0)
  return Object.fromEntries(found.map(({ id, violations }) => [id, violations]))
}

test('a sound history violates nothing, and every check has looked at something', () => {
  const findings = check(soundStory())
  assert.deepEqual(
    findings.filter(({ violations }) => violations.length > 0),
    [],
  )
  assert.deepEqual(
    findings.filter(({ checked }) => checked === 0).map(({ id }) => id),
    [],
  )
})

test('C0: a fenced effect that commits behind a newer fence is seen', () => {
  const found = violationsAfter(({ facts }) => void facts.push(effect(12_000, 'late', 1)))
  assert.match(found.C0?.[0] ?? '', /token 1\) was committed after token 2/)
})

test('C1: effects out of the order of their tokens are seen', () => {
  const found = violationsAfter(({ facts }) => void facts.push(effect(12_000, 'late', 1)))
  assert.match(found.C1?.[0] ?? '', /came after token 2/)
})

test('C2: a token with two owners is seen', () => {
  const found = violationsAfter(({ facts }) => void facts.push(armed(12_000, 'c', 2)))
  assert.match(found.C2?.[0] ?? '', /belongs to owner-b and to owner-c/)
})

test('C3: a token that is given out twice is seen', () => {
  const found = violationsAfter(({ history }) => {
    history.push(line(14_100, 3, 'lockAcquired', { run: 'c', owner: 'owner-b' }))
    history.push(line(14_200, 3, 'lockArmed', { run: 'c', fencingToken: 2 }))
  })
  assert.match(found.C3?.[0] ?? '', /Token 2 was given to b and c/)
})

test('C3: a token that no majority knows is seen', () => {
  const found = violationsAfter(({ facts }) => {
    facts.splice(
      facts.findIndex(({ kind, after }) => kind === 'fence' && after?.token === 2),
      1,
    )
  })
  assert.match(found.C3?.[0] ?? '', /was told token 2/)
})

test('C4: an acknowledged effect that is gone is seen', () => {
  const found = violationsAfter(({ facts }) => {
    facts.splice(
      facts.findIndex(({ id }) => id === 'a-own.js/a/0'),
      1,
    )
  })
  assert.match(found.C4?.[0] ?? '', /ended "done", and is not in the database/)
})

test('C4: an effect that was fenced off and is there all the same is seen', () => {
  const found = violationsAfter(({ history }) => {
    for (const each of history) if (each.outcome && each.run === 'a') each.outcome = 'fenced'
  })
  assert.match(found.C4?.[0] ?? '', /ended "fenced", and is in the database/)
})

test('C4: an unknown outcome may be either', () => {
  const found = violationsAfter(({ history, facts }) => {
    for (const each of history) if (each._id === 'a-own.js/a/0') each.outcome &&= 'unknown'
    facts.splice(
      facts.findIndex(({ id }) => id === 'a-own.js/a/0'),
      1,
    )
  })
  assert.deepEqual(found, {})
})

test('C5: a lease that is taken before it is over is seen', () => {
  const found = violationsAfter(({ facts }) => {
    facts.push(fact('lock', 15_000, 'mmk_lock', lease('c', 14_000), lease('d', 15_000)))
  })
  assert.match(found.C5?.[0] ?? '', /d took the lock of c 5000 ms early/)
})

test('C5: a live runner of 1.3.0 that inherited a past expiry counts as a holder', () => {
  const found = violationsAfter(({ facts }) => {
    facts.push(fact('lock', 20_000, 'mmk_lock', oldLock(19_000), lease('d', 20_000)))
  })
  assert.match(found.C5?.[0] ?? '', /d took the lock of a 59000 ms early/)
})

test('C5: an acknowledged renewal that was rolled back is seen', () => {
  const found = violationsAfter(({ history }) => {
    history.push(line(13_500, 2, 'leaseRenewed', { run: 'b', beats: 9 }))
  })
  assert.match(found.C5?.[0] ?? '', /told of renewal 9, and only 2 are known/)
})

test('C5: a renewal that is told of twice is seen', () => {
  const found = violationsAfter(({ history }) => {
    history.push(line(13_500, 2, 'leaseRenewed', { run: 'b', beats: 2 }))
  })
  assert.match(found.C5?.[0] ?? '', /b was told of renewal 2 twice/)
})

test('C5: two who believe to hold the lock at the same time are seen', () => {
  const found = violationsAfter(({ history, facts }) => {
    history.push(line(11_000, 3, 'lockAcquired', { run: 'c', owner: 'owner-c' }))
    facts.push(fact('lock', 10_990, 'mmk_lock', null, lease('c', 10_990)))
  })
  assert.match(found.C5?.[0] ?? '', /c began \d+ ms before the trust of b had ended/)
})

test('C5: a holder that was stopped believes nothing beyond its last renewal', () => {
  const found = violationsAfter(({ history, facts }) => {
    const kept = history.filter(({ run, ev }) => !(run === 'b' && /Renewed|Released/.test(ev)))
    history.splice(0, history.length, ...kept)
    for (const each of history) if (each.ev === 'ended' && each.pid === 2) each.t = 30_000
    history.push(line(10_100, 9, 'stopped', { worker: 2 }), line(18_000, 9, 'woken', { worker: 2 }))
    history.push(line(17_000, 3, 'lockAcquired', { run: 'c', owner: 'owner-c' }))
    history.push(line(18_100, 2, 'leaseRenewed', { run: 'b', beats: 1 }))
    facts.push(fact('lock', 16_990, 'mmk_lock', null, lease('c', 16_990)))
  })
  assert.deepEqual(found, {})
})

test('C6: a late write without a fence is seen, unless its process was paused', () => {
  /** @param {ReturnType<typeof soundStory>} story */
  const late = ({ history, facts }) => {
    const write = effect(12_000, 'a', 1, 'plain')
    const id = 'a-plain.js/a/1'
    facts.push({ ...write, id })
    history.push(line(9000, 1, 'effectBegun', { ...write.after, _id: id }))
  }
  assert.match(violationsAfter(late).C6?.[0] ?? '', /was written under token 2/)
  const explained = violationsAfter((story) => {
    late(story)
    story.history.push(line(9100, 9, 'stopped', { worker: 1 }))
    story.history.push(line(11_900, 9, 'woken', { worker: 1 }))
    for (const each of story.history) if (each.ev === 'ended' && each.pid === 1) each.t = 13_000
  })
  assert.equal(explained.C6, undefined)
})

test('C7: an operation that outlives the arm of the next run is seen', () => {
  const found = violationsAfter(({ facts }) => {
    facts.push(fact('bulk', 12_000, '2', null, { op: 'long/a', token: 1 }))
  })
  assert.match(found.C7?.[0] ?? '', /long\/a changed 1 documents/)
})

test('C8: a lock that nobody takes again is seen', () => {
  const found = violationsAfter(({ history }) => {
    for (const each of history) if (each.ev === 'dismissed') each.t = 45_000
  })
  assert.match(found.C8?.[0] ?? '', /Nobody took the lock for 31000 ms/)
})

test('C9: an entry that leaves `applied`, or is ended by another run, is seen', () => {
  const again = violationsAfter(({ facts }) => {
    const name = 'a-transaction.js'
    facts.push(
      fact('entry', 12_000, name, entry(name, 'applied', 'a'), entry(name, 'running', 'b')),
    )
  })
  assert.match(again.C9?.[0] ?? '', /went from applied to running/)
  const stolen = violationsAfter(({ facts }) => {
    const name = 'x-plain.js'
    facts.push(
      fact('entry', 12_000, name, entry(name, 'running', 'a'), entry(name, 'applied', 'b')),
    )
  })
  assert.match(stolen.C9?.[0] ?? '', /was begun by a and ended by b/)
})

test('C9: an effect of a transaction whose entry is not applied is seen', () => {
  const found = violationsAfter(({ facts }) => {
    facts.splice(
      facts.findIndex(({ kind, after }) => kind === 'entry' && after?.status === 'applied'),
      1,
    )
  })
  assert.match(found.C9?.join() ?? '', /its entry is running by a/)
})

test('C10: an empty lock document is seen', () => {
  const found = violationsAfter(({ facts }) => {
    facts.push(fact('lock', 12_000, 'mmk_lock', null, { _id: 'mmk_lock' }))
  })
  assert.match(found.C10?.[0] ?? '', /in no known shape/)
})

test('C11: a process that ends as none should is seen', () => {
  const found = violationsAfter(({ history }) => {
    history.push(
      line(12_000, 4, 'ended', { worker: 4, kind: 'cli', code: null, signal: 'SIGSEGV' }),
    )
  })
  assert.match(found.C11?.[0] ?? '', /cli 4 ended with SIGSEGV/)
})

/**
 * Run c begins while b believes in its lease, which was removed in between.
 * @param {ReturnType<typeof soundStory>} story
 */
const robbed = ({ history, facts }) => {
  history.push(line(11_000, 3, 'lockAcquired', { run: 'c', owner: 'owner-c' }))
  facts.push(fact('lock', 10_980, 'mmk_lock', lease('b', 9990), null))
  facts.push(fact('lock', 10_990, 'mmk_lock', null, lease('c', 10_990)))
}

test('C5: the holder that an operator has robbed may believe in its lease for a while', () => {
  const found = violationsAfter((story) => {
    robbed(story)
    // He looked before b was told that it had the lock, and took a while.
    story.history.push(line(9900, 9, 'unlockBegun'), line(10_985, 9, 'unlocked', { code: 0 }))
  })
  assert.deepEqual(found, {})
})

test('C5: an operator who was done before does not explain two holders', () => {
  const found = violationsAfter((story) => {
    robbed(story)
    story.history.push(line(10_100, 9, 'unlockBegun'), line(10_300, 9, 'unlocked', { code: 0 }))
  })
  assert.match(found.C5?.[0] ?? '', /c began \d+ ms before the trust of b had ended/)
})
