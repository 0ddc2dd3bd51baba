// SPDX-License-Identifier: Apache-2.0
// node verify.mjs MAIL RECORDS: what mailauth says of each DKIM signature of the mail, with DNS as RECORDS (JSON: name to text) has it.
import { readFileSync } from "node:fs";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";

const [mail, records] = process.argv.slice(2);
const known = JSON.parse(readFileSync(records, "utf8"));

async function resolver(name, type) {
  if (type === "TXT" && known[name]) {
    return [[known[name]]];
  }
  throw Object.assign(new Error(`no ${type} of ${name}`), { code: "ENOTFOUND" });
}

const found = await dkimVerify(readFileSync(mail), { resolver });
console.log(JSON.stringify(found.results.map(({ selector, algo, status }) => ({ selector, algo, result: status.result, aligned: status.aligned }))));
