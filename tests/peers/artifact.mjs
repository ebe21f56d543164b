// Calls of @actions/artifact: [[method, ...arguments], …]. The answer is [{value} or {error}, …].

import { DefaultArtifactClient } from '@actions/artifact'

import { answer, told } from './peer.mjs'

answer(async (calls) => {
  const client = new DefaultArtifactClient()
  const outcomes = []
  for (const [method, ...values] of calls) {
    try {
      outcomes.push({ value: await client[method](...values) })
    } catch (error) {
      outcomes.push({ error: told(error) })
    }
  }
  return outcomes
})
