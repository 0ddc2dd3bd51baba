// SPDX-License-Identifier: Apache-2.0
// Checks rendered manifests without a cluster: node check.mjs FILE.yaml...
// Each object is validated by its kind's schema (required fields, types), and written as a literal of its kind's type, so that the compiler names
// what the schema lets pass: a field that there is not. Prints what is wrong; ends with 1 when anything is.
import {execFileSync} from "node:child_process";
import {readFileSync, writeFileSync} from "node:fs";
import {join, dirname} from "node:path";
import {fileURLToPath} from "node:url";
import yaml from "js-yaml";

const here = dirname(fileURLToPath(import.meta.url));
const PACKAGES = {"keda.sh": "@kubernetes-models/keda/keda.sh", "postgresql.cnpg.io": "@kubernetes-models/cloudnative-pg/postgresql.cnpg.io"};

function moduleOf({apiVersion, kind}) {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const base = PACKAGES[group] ? `${PACKAGES[group]}/${version}` : `kubernetes-models/${group === "" ? version : `${group}/${version}`}`;
  return `${base}/${kind}`;
}

const wrong = [];
const source = [];
for (const file of process.argv.slice(2)) {
  for (const object of yaml.loadAll(readFileSync(file, "utf8")).filter(Boolean)) {
    const name = `${file}: ${object.kind} ${object.metadata?.name}`;
    try {
      const {[object.kind]: Model} = await import(moduleOf(object));
      new Model(object).validate();
      source.push(`import type {I${object.kind} as T${source.length}} from "${moduleOf(object)}"; export const o${source.length}: T${source.length} = ${JSON.stringify(object)}; // ${name}`);
    } catch (error) {
      wrong.push(`${name}: ${error.message}`);
    }
  }
}

const literals = join(here, "objects.ts");
writeFileSync(literals, source.join("\n") + "\n");
try {
  execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext",
    "--moduleResolution", "nodenext", "--target", "es2022", "--pretty", "false", literals], {encoding: "utf8"});
} catch (error) {
  for (const line of (error.stdout ?? String(error)).split("\n")) {
    const at = /^\S*objects\.ts\((\d+),/.exec(line);
    if (line) wrong.push(at ? `${source[at[1] - 1].replace(/.*\/\/ /, "")}: ${line.replace(/^.*?: error /, "")}` : line);
  }
}
console.log(wrong.length ? wrong.join("\n") : `${source.length} objects, nothing to say`);
process.exitCode = wrong.length ? 1 : 0;
