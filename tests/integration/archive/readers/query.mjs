// SPDX-License-Identifier: Apache-2.0
// Runs a file of SQL in DuckDB: node query.mjs FACTS INVOICES FILE. Prints one JSON object: the rows of each statement that has a line
// "-- name: ..." before it, and the columns of every table that the file makes.
import { readFileSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'

const [facts, invoices, file] = process.argv.slice(2)
const db = await (await DuckDBInstance.create(':memory:')).connect()
const rows = async (sql) => (await db.runAndReadAll(sql)).getRowObjectsJson()
await db.run("SET TimeZone = 'UTC'")
await db.run(`SET VARIABLE facts = '${facts}'`)
await db.run(`SET VARIABLE invoices = '${invoices}'`)
const answer = {}
for (const statement of readFileSync(file, 'utf8').split(/;\s*$/m)) {
  const name = /^-- name: (.*)$/m.exec(statement)
  if (name) answer[name[1]] = await rows(statement)
  else if (statement.trim()) await db.run(statement)
}
for (const { name: table } of await rows('SHOW TABLES')) {
  answer[table] = Object.fromEntries((await rows(`DESCRIBE ${table}`)).map((row) => [row.column_name, row.column_type]))
}
process.stdout.write(JSON.stringify(answer), () => process.exit(0))
