// Calls functions of @actions/core as told: [{function, arguments, env, files, exception}, …], and tells what they wrote.

import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import * as core from '@actions/core'

import { answer } from './peer.mjs'

const FILES = ['GITHUB_OUTPUT', 'GITHUB_ENV', 'GITHUB_PATH', 'GITHUB_STATE', 'GITHUB_STEP_SUMMARY']

function meant(argument) {
  return argument !== null && typeof argument === 'object' && 'exception' in argument
    ? new Error(argument.exception)
    : argument
}

answer(async (cases) => {
  const folder = mkdtempSync(join(tmpdir(), 'core-'))
  const print = process.stdout.write
  const before = { ...process.env }
  const outcomes = []
  for (const one of cases) {
    for (const name of Object.keys(process.env)) delete process.env[name]
    Object.assign(process.env, one.env)
    for (const name of FILES) {
      writeFileSync(join(folder, name), '')
      if (one.files) process.env[name] = join(folder, name)
    }
    const printed = []
    process.stdout.write = (text) => printed.push(Buffer.from(text, 'utf8')) > 0
    const outcome = { value: null, failed: false }
    try {
      const value = core[one.function](...one.arguments.map(meant))
      outcome.value = value === undefined ? null : value
    } catch {
      outcome.failed = true
    }
    process.stdout.write = print
    outcome.stdout = Buffer.concat(printed).toString('latin1')
    outcome.env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !FILES.includes(name)))
    outcome.files = Object.fromEntries(FILES.map((name) => [name, readFileSync(join(folder, name)).toString('latin1')]))
    outcomes.push(outcome)
  }
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, before)
  return outcomes
})
