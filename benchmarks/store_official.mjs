// The official client's side of benchmarks/store.py: one save or one restore.
//
//   node store_official.mjs save|restore KEY PATH...
//
// The service is named by the ACTIONS_* variables. The last line is one JSON object: the seconds it took.

import * as cache from '@actions/cache'

const [verb, key, ...paths] = process.argv.slice(2)
const begin = process.hrtime.bigint()
const result = verb === 'save' ? await cache.saveCache(paths, key) : await cache.restoreCache(paths, key)
const seconds = Number(process.hrtime.bigint() - begin) / 1e9
if (result === undefined || result === -1) process.exit(1)
console.log(`\n${JSON.stringify({ seconds })}`)
process.exit(0) // idle connections would keep node alive
