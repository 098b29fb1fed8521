// A real chat model behind OpenAI's Chat Completions, as llama.cpp's own server speaks them.
//
// GET /health, GET /v1/models, POST /v1/chat/completions, POST /tokenize {content} → {tokens: n}.
// One request at a time; a client that hangs up ends its answer. Every request is written to
// --log as one line of JSON when it ends.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: {
    folder: { type: "string" },
    model: { type: "string" },
    port: { type: "string" },
    log: { type: "string" },
    threads: { type: "string", default: "1" },
    context: { type: "string", default: "8192" },
    "most-tokens": { type: "string", default: "512" },
    seed: { type: "string", default: "1" },
    "refuse-tools": { type: "boolean", default: false },
    special: { type: "boolean", default: false }, // write special tokens out, as llama.cpp --special
  },
});
const MODEL = "gemma3:270m";
const GONE = "client_gone";
// Gemma's form of turns, for files of its weights that come without a template
const GEMMA =
  "{{ bos_token }}{% for m in messages %}<start_of_turn>" +
  "{{ 'model' if m.role == 'assistant' else 'user' }}\n{{ m.content }}<end_of_turn>\n{% endfor %}" +
  "<start_of_turn>model\n";

const installed = (...path) =>
  import(pathToFileURL(join(options.folder, "node_modules", ...path)).href);
const { getLlama } = await installed("node-llama-cpp", "dist", "index.js");
const { Template } = await installed("@huggingface", "jinja", "dist", "index.js");

const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, logLevel: "error" });
const model = await llama.loadModel({ modelPath: options.model });
const context = await model.createContext({
  contextSize: Number(options.context),
  threads: Number(options.threads),
});
const sequence = context.getSequence();
const template = new Template(model.fileInfo.metadata.tokenizer?.chat_template ?? GEMMA);
const textOf = (token) => (token == null ? "" : model.detokenize([token], true));

class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.error = error;
  }
}

function plain(message) {
  const { role, content } = message;
  const parts = Array.isArray(content) ? content : [{ type: "text", text: content ?? "" }];
  return { role, content: parts.map((part) => part.text ?? "").join("\n") };
}

function promptOf(body) {
  const messages = body.messages.map(plain);
  if (body.tools?.length) {
    const described = `You can call these tools:\n${JSON.stringify(body.tools)}`;
    messages[0] = { ...messages[0], content: `${messages[0].content}\n\n${described}` };
  }
  try {
    return template.render({
      messages,
      add_generation_prompt: true,
      bos_token: textOf(model.tokens.bos),
      eos_token: textOf(model.tokens.eos),
    });
  } catch (error) {
    throw new Refused(500, { code: 500, message: String(error.message), type: "server_error" });
  }
}

function tokensOf(body) {
  if (body.tools?.length && options["refuse-tools"]) {
    const message = `registry.ollama.ai/library/${MODEL} does not support tools`;
    throw new Refused(400, { message, type: "api_error", param: null, code: null });
  }
  const tokens = model.tokenize(promptOf(body), true);
  if (tokens.length >= context.contextSize) {
    const message = "the request exceeds the available context size, try increasing it";
    throw new Refused(400, { code: 400, message, type: "exceed_context_size_error" });
  }
  return tokens;
}

async function generate(body, tokens, record, isGone, say) {
  const most = Math.min(
    body.max_completion_tokens ?? body.max_tokens ?? Infinity,
    Number(options["most-tokens"]),
    context.contextSize - tokens.length,
  );
  await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
  record.cached_tokens = sequence.nextTokenIndex;
  const written = [];
  const sampling = {
    temperature: body.temperature ?? 0.8,
    topK: 40,
    topP: body.top_p ?? 0.95,
    seed: Number(options.seed),
    repeatPenalty: { penalty: 1.1, punishTokens: () => written.slice(-64) }, // as Ollama does
  };
  for await (const token of sequence.evaluate(tokens.slice(record.cached_tokens), sampling)) {
    if (isGone()) return GONE;
    if (model.isEogToken(token)) {
      if (options.special) say(record.text + textOf(token));
      return "stop";
    }
    written.push(token);
    record.completion_tokens = written.length;
    const text = model.detokenize(written, options.special);
    if (!text.endsWith("\ufffd")) say(text);
    if (written.length >= most) return "length";
  }
  return "stop";
}

async function complete(body, response) {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const record = { request: body, text: "", completion_tokens: 0, cached_tokens: 0 };
  let gone = false;
  response.on("close", () => (gone = !response.writableEnded));
  const head = { id: `chatcmpl-${Date.now()}`, created: Math.floor(Date.now() / 1000), model: MODEL };
  const chunk = (delta, finish_reason = null) =>
    event({ object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
  const event = (data) => response.write(`data: ${JSON.stringify({ ...head, ...data })}\n\n`);
  const say = (text) => {
    record.first_s ??= seconds();
    const delta = text.slice(record.text.length);
    record.text = text;
    if (body.stream && delta) chunk({ content: delta });
  };
  try {
    const tokens = tokensOf(body);
    record.prompt_tokens = tokens.length;
    if (body.stream) {
      response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
      chunk({ role: "assistant", content: "" });
    }
    record.finish_reason = await generate(body, tokens, record, () => gone, say);
    if (!gone) finish(body, response, record, head, chunk, event);
  } finally {
    record.total_s = seconds();
    appendFileSync(options.log, `${JSON.stringify(record)}\n`);
  }
}

function finish(body, response, record, head, chunk, event) {
  const { prompt_tokens, completion_tokens, finish_reason, text } = record;
  const total_tokens = prompt_tokens + completion_tokens;
  const usage = { prompt_tokens, completion_tokens, total_tokens };
  if (!body.stream) {
    const message = { role: "assistant", content: text };
    const choices = [{ index: 0, message, finish_reason }];
    return answer(response, 200, { ...head, object: "chat.completion", choices, usage });
  }
  chunk({}, finish_reason);
  if (body.stream_options?.include_usage) {
    event({ object: "chat.completion.chunk", choices: [], usage });
  }
  response.end("data: [DONE]\n\n");
}

function answer(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(body));
}

async function bodyOf(request) {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  return JSON.parse(text);
}

let turn = Promise.resolve();

async function serve(request, response) {
  switch (`${request.method} ${request.url.replace(/^\/v1/, "")}`) {
    case "GET /health":
      return answer(response, 200, { status: "ok" });
    case "GET /models":
      return answer(response, 200, { object: "list", data: [{ id: MODEL, object: "model" }] });
    case "POST /tokenize": {
      const { content } = await bodyOf(request);
      return answer(response, 200, { tokens: model.tokenize(content, false).length });
    }
    case "POST /chat/completions": {
      const body = await bodyOf(request);
      const mine = turn.then(() => complete(body, response));
      turn = mine.catch(() => {});
      return mine;
    }
    default:
      return answer(response, 404, { error: { code: 404, message: "File Not Found" } });
  }
}

createServer((request, response) =>
  serve(request, response).catch((error) => {
    const status = error.status ?? 500;
    const told = error.error ?? { code: 500, message: String(error), type: "server_error" };
    if (response.headersSent) response.end();
    else answer(response, status, { error: told });
  }),
).listen(Number(options.port), "127.0.0.1", () => console.log("chat model ready"));
