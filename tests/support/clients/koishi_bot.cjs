// A bot on Koishi and its Lark adapter's long connection:
// `node koishi_bot.cjs DOMAIN APP_ID APP_SECRET`, with NODE_PATH naming where both are installed.
// It answers each mention in its thread with a card that has a button. On the long connection the
// adapter takes events only, so it does not answer a press.

const { Context } = require("koishi");
const http = require("@koishijs/plugin-http");
const lark = require("@satorijs/adapter-lark");

const [domain, appId, appSecret] = process.argv.slice(2);
const app = new Context();
const endpoint = `${domain}/open-apis`;
app.plugin(http.default);
app.plugin(lark.default, { platform: "feishu", protocol: "ws", appId, appSecret, endpoint });

app.on("message", async (session) => {
  if (!session.stripped.atSelf) return;
  const button = {
    tag: "button",
    text: { tag: "plain_text", content: "Press" },
    behaviors: [{ type: "callback", value: { to: session.messageId } }],
  };
  const text = { tag: "markdown", content: `heard ${session.stripped.content}` };
  const card = { schema: "2.0", body: { elements: [text, button] } };
  await session.bot.internal.im.message.reply(session.messageId, {
    msg_type: "interactive",
    content: JSON.stringify(card),
    reply_in_thread: true,
  });
});
app.start();
