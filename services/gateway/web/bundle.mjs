// SPDX-License-Identifier: Apache-2.0
// Bundles pages: node bundle.mjs FOLDER PAGE.html=/path ... A page names its modules and styles by relative src and href; each becomes
// <folder of the path>/assets/<name>-<hash>.<ext>, minified, and the page gets these names. FOLDER has npm's packages, and gets the files, their
// brotli forms and the list bundle.rows.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";

const [folder, ...pages] = process.argv.slice(2);
const esbuild = createRequire(path.join(folder, "package.json"))("esbuild");
const TYPES = { ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml" };
const out = path.join(folder, "bundle");
const rows = [];

function add(url, file, kind) {
  const bytes = fs.readFileSync(file);
  fs.writeFileSync(`${file}.br`, zlib.brotliCompressSync(bytes));
  rows.push([url, file, TYPES[path.extname(file)], kind].join("|"));
}

fs.rmSync(out, { recursive: true, force: true });
for (const page of pages) {
  const [source, url] = page.split("=");
  const home = path.dirname(source);
  const assets = `${url.replace(/\/[^/]*$/, "")}/assets`;
  const html = fs.readFileSync(source, "utf8");
  const entries = [...html.matchAll(/ (?:src|href)="\.\/([^"]+\.(?:js|css))"/g)].map((found) => found[1]);
  const { metafile } = esbuild.buildSync({
    entryPoints: entries.map((entry) => path.join(home, entry)), bundle: true, minify: true, splitting: true, format: "esm", target: "es2022",
    outdir: path.join(out, assets), outbase: home, entryNames: "[name]-[hash]", chunkNames: "[name]-[hash]", assetNames: "[name]-[hash]", metafile: true,
    absWorkingDir: out.replace(/[^/]+$/, ""), legalComments: "none", external: ["/inbox/*"], nodePaths: [path.join(folder, "node_modules")] });
  let made = html;
  for (const [file, { entryPoint }] of Object.entries(metafile.outputs)) {
    const name = `${assets}/${path.basename(file)}`;
    add(name, path.resolve(out, "..", file), "WEB_HASHED");
    if (entryPoint) made = made.replace(`"./${path.relative(home, path.resolve(out, "..", entryPoint))}"`, `"${name}"`);
  }
  if (/ (?:src|href)="\.\//.test(made)) throw new Error(`${source}: a name was not replaced`);
  const file = path.join(out, url.endsWith("/") ? `${url}index.html` : `${url}.html`);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, made);
  add(url, file, "WEB_PAGE");
}
fs.writeFileSync(path.join(folder, "bundle.rows"), `${rows.join("\n")}\n`);
