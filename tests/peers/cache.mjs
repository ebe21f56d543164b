// Calls of @actions/cache: [[method, ...arguments], …]. The answer is [{value} or {error}, …].

import * as cache from '@actions/cache'

import { answer, told } from './peer.mjs'

answer(async (calls) => {
  const outcomes = []
  for (const [method, ...values] of calls) {
    try {
      outcomes.push({ value: await cache[method](...values) })
    } catch (error) {
      outcomes.push({ error: told(error) })
    }
  }
  return outcomes
})
