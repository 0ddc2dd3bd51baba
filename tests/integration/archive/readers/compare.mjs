// SPDX-License-Identifier: Apache-2.0
// Reads a Parquet file with DuckDB and with hyparquet and compares every cell with CELLS (tests/harness/parquet_sample.c):
//   node compare.mjs FILE CELLS
// Prints one JSON object: for each reader how many cells were compared and the first ones that differ; DuckDB's view of the file.
import { readFileSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

const [file, cells] = process.argv.slice(2)
const expected = readFileSync(cells, 'utf8').trimEnd().split('\n').map((line) => (line ? JSON.parse(line) : null)).filter((row) => row)
const hex = (bytes) => Buffer.from(bytes).toString('hex')

function compare(rows, cell) {
  const wrong = []
  let count = 0
  rows.forEach((row, i) => {
    expected[i].forEach((value, column) => {
      count++
      const found = cell(row, column)
      if (found !== value && wrong.length < 5) wrong.push({ row: i, column, found: String(found), value })
    })
  })
  return { rows: rows.length, cells: count, wrong }
}

// ---- DuckDB: every column as text, bytes in hex, times as microseconds ----
const db = await (await DuckDBInstance.create(':memory:')).connect()
const all = async (sql) => (await db.runAndReadAll(sql)).getRowObjectsJson()
const text = { id: 'id', yes: 'yes', small: 'small::VARCHAR', number: 'number::VARCHAR', at: 'epoch_us("at")::VARCHAR', wide: 'wide::VARCHAR',
  channel: 'channel', code: 'code', variables: 'variables::VARCHAR', hash: 'lower(hex(hash))', nothing: 'nothing' }
const names = Object.keys(text)
const selected = names.map((name) => `${text[name]} AS "${name}"`).join(', ')
await db.run('SET preserve_insertion_order = true')
const duck = compare(await all(`SELECT ${selected} FROM read_parquet('${file}')`), (row, column) => row[names[column]])

// ---- hyparquet ----
const buffer = await asyncBufferFromFile(file)
const objects = await parquetReadObjects({ file: buffer, compressors, utf8: false, parsers: {
  timestampFromMicroseconds: (value) => value,
  jsonFromBytes: (bytes) => bytes && Buffer.from(bytes).toString(),
  stringFromBytes: (bytes) => bytes && Buffer.from(bytes).toString() } })
const plain = (value) => (value === null || value === undefined ? null
  : typeof value === 'boolean' || typeof value === 'string' ? value
    : value instanceof Uint8Array ? hex(value) : String(value))
const hyparquet = compare(objects, (row, column) => plain(row[names[column]]))
const metadata = await parquetMetadataAsync(buffer)

const last = expected.length - 1
const answer = {
  duckdb: duck,
  hyparquet,
  rows: Number(metadata.num_rows),
  schema: Object.fromEntries((await all(`DESCRIBE SELECT * FROM read_parquet('${file}')`)).map((row) => [row.column_name, row.column_type])),
  metadata: await all(`SELECT decode(key) AS key, decode(value) AS value FROM parquet_kv_metadata('${file}') WHERE decode(key) = 'unit'`),
}
if (last > 0) {
  const one = expected[Math.floor(last / 2)]
  const excluded = async (column, value) =>
    (await all(`SELECT count(*) FILTER (bloom_filter_excludes) AS n FROM parquet_bloom_probe('${file}', '${column}', ${value})`))[0].n
  answer.groups = (await all(`SELECT count(DISTINCT row_group_id) AS n FROM parquet_metadata('${file}')`))[0].n
  answer.statistics = (await all(`SELECT min(stats_min_value) AS least, max(stats_max_value) AS greatest, sum(stats_null_count) AS nulls
    FROM parquet_metadata('${file}') WHERE path_in_schema = 'id'`))[0]
  answer.by_statistics = (await all(`SELECT count(*) AS n FROM read_parquet('${file}') WHERE id = '${one[0]}'`))[0].n
  answer.by_time = (await all(`SELECT count(*) AS n FROM read_parquet('${file}') WHERE epoch_us("at") = ${expected[1][4]} AND id = '${expected[1][0]}'`))[0].n
  answer.longest = (await all(`SELECT count(*) AS n FROM read_parquet('${file}') WHERE variables::VARCHAR >= '{"t":"gr'`))[0].n
  answer.excluded_present = [await excluded('id', `'${one[0]}'`), await excluded('code', `'${one[7]}'`)]
  answer.excluded_absent = [await excluded('id', `'nothing'`), await excluded('code', `'nothing'`)]
}
console.log(JSON.stringify(answer))
process.exit(0)
