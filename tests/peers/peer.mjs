// What every script of a peer starts from: its request, and a place for its answer.

import { readFileSync, renameSync, writeFileSync } from 'node:fs'

const [asked, answered] = process.argv.slice(2)

/** What of an error can be told. */
export function told(error) {
  return { ...error, name: error.name, message: error.message }
}

/** Answer the request with what `work` makes of it, or with the error it throws. */
export async function answer(work) {
  let result
  try {
    result = { value: (await work(JSON.parse(readFileSync(asked, 'utf8')))) ?? null }
  } catch (error) {
    result = { error: told(error) }
  }
  writeFileSync(`${answered}.new`, JSON.stringify(result, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
  renameSync(`${answered}.new`, answered)
  process.exit(0) // idle connections would keep node alive
}
