// A bot as Feishu's samples for Node are written, on the long connection of the Node SDK:
// `node node_bot.cjs DOMAIN APP_ID APP_SECRET`, with NODE_PATH naming where the SDK is installed.
// It answers each message in its thread with a card that has a button, and a press with a toast.

const lark = require("@larksuiteoapi/node-sdk");

const [domain, appId, appSecret] = process.argv.slice(2);
const client = new lark.Client({ appId, appSecret, domain });

const eventDispatcher = new lark.EventDispatcher({}).register({
  "im.message.receive_v1": async ({ message }) => {
    const button = {
      tag: "button",
      text: { tag: "plain_text", content: "Press" },
      behaviors: [{ type: "callback", value: { to: message.message_id } }],
    };
    const text = { tag: "markdown", content: `heard ${JSON.parse(message.content).text}` };
    const card = { schema: "2.0", body: { elements: [text, button] } };
    await client.im.v1.message.reply({
      path: { message_id: message.message_id },
      data: { msg_type: "interactive", content: JSON.stringify(card), reply_in_thread: true },
    });
  },
  "card.action.trigger": async ({ action }) => ({
    toast: { type: "info", content: `to ${action.value.to}` },
  }),
});
new lark.WSClient({ appId, appSecret, domain }).start({ eventDispatcher });
