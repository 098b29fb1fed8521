// The words of the page, in two languages.

const WORDS = {
  en: {
    brand: "Feishu sandbox", language: "中文", groups: "Groups", p2p: "With Memo",
    sandboxHint: "A simulated group. Nothing leaves this machine.",
    chats: "Chats", memory: "What Memo remembers", send: "Send", speakAs: "Speak as",
    placeholder: "Message… type @ to mention somebody", members: "members",
    hearsAll: "hears everything",
    hearsAllHint: "On: the app receives every message of the group (im:message.group_msg). Off: only those that @ it.",
    replyTo: "Reply in the thread of", replyInThread: "Reply in thread", quote: "Quote",
    recall: "Recall", like: "Like", recalled: "This message was recalled", onlyYou: "Only visible to you", edited: "edited", bot: "BOT",
    generating: "Generating…", nothing: "No messages yet. Try: @Memo remember that our launch is on 3 March",
    noInspector: "No bot shows its memory here. Run the app in sandbox mode to see it.",
    empty: "Nothing yet.", pushes: "Events pushed to the app", everyone: "Everyone",
    waiting: "waiting", image: "Image", file: "File", attach: "Send a file or picture", fileTooLarge: "The sandbox takes files up to 10 MB.", offline: "The sandbox does not answer. Trying again…",
    offlineModel: "Offline model: fixed rules answer, no language model. Ask Memo “what can you do?”; set OPENAI_API_KEY for a real one.",
    dissolved: "dissolved", clickFailed: "The app did not answer as it should",
  },
  zh: {
    brand: "飞书沙盒", language: "English", groups: "群聊", p2p: "与 Memo 单聊",
    sandboxHint: "这是模拟群聊，数据不会离开本机。",
    chats: "会话", memory: "Memo 记得什么", send: "发送", speakAs: "发言人",
    placeholder: "输入消息… 输入 @ 可提及成员", members: "位成员",
    hearsAll: "接收全部消息",
    hearsAllHint: "开：应用收到群内所有消息（im:message.group_msg）。关：仅收到 @ 它的消息。",
    replyTo: "回复话题：", replyInThread: "回复话题", quote: "引用",
    recall: "撤回", like: "点赞", recalled: "此消息已撤回", onlyYou: "仅对你可见", edited: "已编辑", bot: "机器人",
    generating: "正在生成…", nothing: "还没有消息。试试：@Memo 记住我们的发布日是 3 月 3 日",
    noInspector: "此处没有机器人展示记忆。请以沙盒模式运行应用。",
    empty: "暂无内容。", pushes: "推送给应用的事件", everyone: "所有人",
    waiting: "等待中", image: "图片", file: "文件", attach: "发送文件或图片", fileTooLarge: "沙盒最多接收 10 MB 的文件。", offline: "沙盒没有响应，正在重试…",
    offlineModel: "离线模型：按固定规则回答，不是语言模型。可以问 Memo“你能做什么？”；设置 OPENAI_API_KEY 后由真正的模型回答。",
    dissolved: "已解散", clickFailed: "应用没有正确响应",
  },
};

function remembered() {
  try { return localStorage.getItem("language"); } catch { return null; }
}

let language = remembered() || (navigator.language.startsWith("zh") ? "zh" : "en");

export const say = (name) => WORDS[language][name] ?? name;
// Words that the app brings along: one text, or `{en, zh}`.
export const inLanguage = (words) => words?.[language] ?? words;
export const locale = () => (language === "zh" ? "zh-CN" : "en-GB");

let zone;
export const showTimesIn = (name) => { zone = name; };
export const timeOf = (ms, form = {}) => new Date(ms).toLocaleTimeString(locale(), { timeZone: zone, ...form });

export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  try { localStorage.setItem("language", language); } catch { /* private mode */ }
}

export function label(root) {
  document.documentElement.lang = locale();
  for (const node of root.querySelectorAll("[data-label]")) node.textContent = say(node.dataset.label);
  for (const node of root.querySelectorAll("[data-title]")) node.title = say(node.dataset.title);
}
