// Rewrites the counts in reference.json after its samples were edited:
//   npm install --no-save gpt-tokenizer@4.0.0 && node tests/data/tokens/count.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { countTokens as cl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { countTokens as o200k } from "gpt-tokenizer/encoding/o200k_base";

const file = new URL("reference.json", import.meta.url);
const reference = JSON.parse(readFileSync(file, "utf8"));
for (const sample of reference.samples) {
  sample.o200k_base = o200k(sample.text);
  sample.cl100k_base = cl100k(sample.text);
}
writeFileSync(file, JSON.stringify(reference, null, 1) + "\n");
