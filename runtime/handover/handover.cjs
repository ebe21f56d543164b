'use strict'
// The runner gives the cache's address and token to JavaScript actions, never to `run:` steps.
// This one hands them to the next step of the composite action, as one masked output.
// .cjs: a package.json of the user's workspace must not decide how this file is read.

const crypto = require('crypto')
const fs = require('fs')

const NAMES = [
  'ACTIONS_RUNTIME_TOKEN',
  'ACTIONS_RESULTS_URL',
  'ACTIONS_CACHE_URL',
  'ACTIONS_RUNTIME_URL',
  'ACTIONS_CACHE_SERVICE_V2',
  'ACTIONS_CACHE_MODE',
  'ACTIONS_ORCHESTRATION_ID',
]

function command(name, data) {
  return `::${name}::${data.replace(/%/g, '%25').replace(/\r/g, '%0D').replace(/\n/g, '%0A')}\n`
}

function output(name, value) {
  let delimiter
  do {
    delimiter = `checkpoint-run-${crypto.randomBytes(16).toString('hex')}`
  } while (value.includes(delimiter))
  return `${name}<<${delimiter}\n${value}\n${delimiter}\n`
}

function write(text) {
  const file = process.env.GITHUB_OUTPUT
  if (!file) {
    throw new Error('GITHUB_OUTPUT is not set')
  }
  fs.appendFileSync(file, text + output('file', file))
}

const values = {}
for (const name of NAMES) {
  if (process.env[name]) {
    values[name] = process.env[name]
  }
}
const blob = JSON.stringify(values)

let masks = ''
if (values.ACTIONS_RUNTIME_TOKEN) {
  masks += command('add-mask', values.ACTIONS_RUNTIME_TOKEN)
}
if (Object.keys(values).length > 0) {
  // Never a bare `{}`: that would blank out every empty object in the job's log.
  masks += command('add-mask', blob)
}

// The masks are out before anything that holds the values exists.
process.stdout.write(masks, () => {
  try {
    write(output('runtime', blob))
  } catch (error) {
    process.stdout.write(command('error', `checkpoint-run: the step's outputs cannot be written: ${error.message}`))
    process.exitCode = 1
  }
})
