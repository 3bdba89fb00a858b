// Bundles src/ into ../assets: view.js, view.css, and the licences of the libraries in view.js.
// `npm ci && npm run build`; the same sources and lock file give the same bytes.
import { build } from "esbuild";
import { readFileSync, writeFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "assets");

const result = await build({
  entryPoints: { view: join(here, "src", "main.ts") },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome100", "firefox113", "safari16.4"], // the first with DecompressionStream, or older
  charset: "utf8",
  legalComments: "none", // licences are in LICENSES.txt
  metafile: true,
  absWorkingDir: here,
  outdir: assets,
});

// `</script` inside a string would end the script element of the page.
const script = join(assets, "view.js");
writeFileSync(script, readFileSync(script, "utf8").replaceAll("</script", "<\\/script"));

const bundled = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
  const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (found) bundled.add(found[1]);
}
const parts = [...bundled].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${name} has no licence file`);
  const text = readFileSync(join(folder, file), "utf8").trim();
  return `${name} ${about.version} (${about.license})\n\n${text}\n`;
});
const line = `\n${"-".repeat(80)}\n\n`;
const head = "Libraries that are bundled in view.js, each under its licence.\n";
writeFileSync(join(assets, "LICENSES.txt"), [head, ...parts].join(line));
