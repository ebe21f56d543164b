// Reads Markdown as GitHub does: cells of its tables, blocks of code, links, and the bars of its diagrams.

import { JSDOM } from 'jsdom'
import { micromark } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'

import { answer } from './peer.mjs'

const { window } = new JSDOM('<body></body>')
globalThis.window = window
globalThis.document = window.document
const { default: mermaid } = await import('mermaid')

async function diagram(source) {
  await mermaid.parse(source)
  const { db } = await mermaid.mermaidAPI.getDiagramFromText(source)
  return db.getTasks().map(({ task, startTime, endTime, crit, active, done }) => ({
    task: task.trim(),
    milliseconds: endTime - startTime,
    kind: { crit: Boolean(crit), active: Boolean(active), done: Boolean(done) },
  }))
}

answer(async (pages) => {
  const read = []
  for (const page of pages) {
    const html = micromark(page, { extensions: [gfm()], htmlExtensions: [gfmHtml()], allowDangerousHtml: true })
    const found = new JSDOM(html).window.document
    const all = (what) => [...found.querySelectorAll(what)]
    const diagrams = []
    for (const block of all('code.language-mermaid')) diagrams.push(await diagram(block.textContent))
    read.push({
      heading: all('h2').map((one) => one.textContent),
      rows: all('tr').map((row) => [...row.children].map((cell) => cell.textContent)),
      code: all('pre > code:not([class])').map((block) => block.textContent),
      elements: [...new Set(all('body *').map((one) => one.localName))].sort(),
      // What a mention or a reference could be made of: text that is no code.
      text: all('body *').flatMap((one) => one.closest('code, pre') ? [] :
        [...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data)).join(''),
      diagrams,
    })
  }
  return read
})
