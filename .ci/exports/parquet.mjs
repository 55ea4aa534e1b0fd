// Asks DuckDB what is in Parquet files, and in the CSV files that they were made of: the answers must be equal.
//
//	node parquet.mjs DIR
import {DuckDBInstance} from '@duckdb/node-api';

const dir = process.argv[2];
const db = await (await DuckDBInstance.create(':memory:')).connect();
const ask = async query => JSON.stringify((await db.runAndReadAll(query)).getRowsJson());
for (const [table, columns] of Object.entries({
  requests: 'count(*), count(ttft_ms), sum(output_tokens), max(e2e_ms), min(outcome)',
  iterations: 'count(*), sum(output_tokens), sum(prefill_tokens), max(kv_blocks), max(duration_ms)',
  timeseries: 'count(*), sum(output_tokens), max(kv_usage_mean), count(ttft_mean_ms)',
})) {
  const [parquet, csv] = [await ask(`SELECT ${columns} FROM '${dir}/${table}.parquet'`), await ask(`SELECT ${columns} FROM read_csv('${dir}/${table}.csv')`)];
  if (parquet !== csv) {
    console.error(`${table}: Parquet says ${parquet}, CSV ${csv}`);
    process.exit(1);
  }
  console.log(`${table}: ${parquet}`);
}
