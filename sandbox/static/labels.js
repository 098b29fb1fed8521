// The words of the page, in two languages.

const WORDS = {
  en: {
    brand: "Feishu sandbox", language: "中文", groups: "Groups", p2p: "With Memo",
    sandboxHint: "A simulated group. Nothing leaves this machine.",
    chats: "Chats", memory: "What Memo remembers", send: "Send", speakAs: "Speak as",
    placeholder: "Message… @ mentions, / commands", members: "members",
    platform: "Scopes and limits", scopes: "Scopes granted to the app", strictness: "Limits of the platform",
    platformHint: "Turn something off to see what your app does without it. Changes apply at once.",
    replyTo: "Reply in the thread of", replyInThread: "Reply in thread", quote: "Quote",
    recall: "Recall", like: "Like", recalled: "This message was recalled", onlyYou: "Only visible to you", edited: "edited", bot: "BOT",
    generating: "Generating…", nothing: "No messages yet. Try: @Memo remember that our launch is on 3 March",
    noInspector: "There's no bot whose memory could be shown. Run the app in sandbox mode to see it.",
    empty: "Nothing yet.", everyone: "Everyone",
    image: "Image", file: "File", attach: "Send a file or picture", fileTooLarge: "The sandbox takes files up to 10 MB.", offline: "The sandbox isn't answering. Retrying…",
    offlineModel: "Offline model: answers follow fixed rules, without a language model. Ask Memo “what can you do?”, or set OPENAI_API_KEY to use a real model.",
    dissolved: "dissolved", clickFailed: "The app didn't answer correctly",
    skip: "Skip to the message box", messages: "Messages", message: "Message", suggestions: "Suggestions",
    close: "Close", cancel: "Cancel", remove: "Remove", toBeSent: "Files to be sent", unread: "unread",
    oneNew: "1 new message", newFrom: "New message from", manyNew: "{} new messages", toNewest: "Jump to latest", today: "Today", yesterday: "Yesterday",
    edit: "Edit", editing: "Editing", editUnheard: "Feishu doesn't tell apps about edits. Memo reads the message again when an answer rests on it.",
    quoting: "Quote", react: "React", actions: "Actions", botMenu: "Menu of the bot", voiceMessage: "Voice message", speak: "Send what is written as a voice message",
    addPast: "A group with a past", makingPast: "Making two years of talk…",
    earlier: "Earlier messages",
    grantTitle: "{} wants to act as you", grantAsks: "It asks to:", grantAs: "Approve as",
    approve: "Approve", refuse: "Refuse", grantUnknown: "This link isn't known here.",
    grantMissing: "The app itself doesn't have these scopes:",
    grant_approved: "Approved. You can close this page.", grant_refused: "Refused. You can close this page.",
    grant_fetched: "Approved. You can close this page.", grant_expired: "This link has expired. Ask for a new one.",
    documents: "Documents", documentsHint: "Documents of the simulated company, and who can open them.",
    noDocuments: "No documents yet.", documentTitle: "Title", documentText: "Text", documentOwner: "Owner", write: "Write",
    comments: "Comments", commentsHint: "Select a passage to comment on it. @ mentions the bot.", onAll: "On the whole document", inThread: "A reply",
    replyHere: "Reply", solve: "Resolve", reopen: "Reopen", commentAs: "Writes", comment: "Comment", sendComment: "Comment", back: "All documents",
    readers: "Can read:", documentDeleted: "Deleted.", restore: "Restore", linkSharing: "Link sharing", shareWith: "Share with…",
    link_closed: "Link: collaborators only", link_tenant_readable: "Link: everybody in the company", link_anyone_readable: "Link: everybody",
    agendas: "Calendars and tasks", agendasHint: "What everybody has in their calendar and their tasks. People see one another's calendar as free or busy only.",
    nothingPlanned: "Nothing yet.", dueOn: "due", eventTitle: "Title", eventStart: "Starts, for an hour", eventZone: "Time zone", eventOwner: "Whose",
    connected: "People who have connected", nobodyConnected: "Nobody has connected.", revoke: "Revoke",
  },
  zh: {
    brand: "飞书沙盒", language: "English", groups: "群聊", p2p: "与 Memo 单聊",
    sandboxHint: "这是模拟群聊，数据不会离开本机。",
    chats: "会话", memory: "Memo 记住的内容", send: "发送", speakAs: "发言人",
    placeholder: "输入消息… @ 提及，/ 命令", members: "位成员",
    platform: "权限与限制", scopes: "应用已开通的权限", strictness: "平台的限制",
    platformHint: "关闭某一项，看看应用缺少它时会怎样。修改立即生效。",
    replyTo: "回复话题：", replyInThread: "回复话题", quote: "引用",
    recall: "撤回", like: "点赞", recalled: "此消息已撤回", onlyYou: "仅对你可见", edited: "已编辑", bot: "机器人",
    generating: "正在生成…", nothing: "还没有消息。试试：@Memo 记住我们的发布日是 3 月 3 日",
    noInspector: "这里没有可以展示记忆的机器人。请以沙盒模式运行应用。",
    empty: "暂无内容。", everyone: "所有人",
    image: "图片", file: "文件", attach: "发送文件或图片", fileTooLarge: "沙盒最多接收 10 MB 的文件。", offline: "沙盒没有响应，正在重试…",
    offlineModel: "离线模型：没有接入大模型，按固定规则回答。可以问 Memo“你能做什么？”，或设置 OPENAI_API_KEY 后由大模型回答。",
    dissolved: "已解散", clickFailed: "应用没有正确响应",
    skip: "跳到输入框", messages: "消息", message: "消息", suggestions: "候选",
    close: "关闭", cancel: "取消", remove: "移除", toBeSent: "待发送的文件", unread: "条未读",
    oneNew: "1 条新消息", newFrom: "新消息，来自", manyNew: "{} 条新消息", toNewest: "回到最新", today: "今天", yesterday: "昨天",
    edit: "编辑", editing: "正在编辑", editUnheard: "飞书不会把编辑推送给应用；回答用到这条消息时，Memo 会重新读取。",
    quoting: "引用", react: "表情回应", actions: "操作", botMenu: "机器人菜单", voiceMessage: "语音消息", speak: "把输入的文字作为语音消息发送",
    addPast: "有历史消息的群", makingPast: "正在生成两年的聊天记录…",
    earlier: "更早的消息",
    grantTitle: "{} 申请以你的身份访问", grantAsks: "申请以下权限：", grantAs: "授权人",
    approve: "同意", refuse: "拒绝", grantUnknown: "这里没有这个链接。",
    grantMissing: "应用自身尚未开通这些权限：",
    grant_approved: "已同意，可以关闭此页面。", grant_refused: "已拒绝，可以关闭此页面。",
    grant_fetched: "已同意，可以关闭此页面。", grant_expired: "链接已过期，请重新获取。",
    documents: "云文档", documentsHint: "模拟企业里的文档，以及谁能打开它们。",
    noDocuments: "还没有文档。", documentTitle: "标题", documentText: "正文", documentOwner: "所有者", write: "新建",
    comments: "评论", commentsHint: "选中一段文字即可评论，用 @ 提到机器人。", onAll: "对整篇文档", inThread: "回复",
    replyHere: "回复", solve: "解决", reopen: "重新打开", commentAs: "评论者", comment: "评论", sendComment: "发表", back: "所有文档",
    readers: "可阅读：", documentDeleted: "已删除。", restore: "恢复", linkSharing: "链接分享", shareWith: "分享给…",
    link_closed: "链接：仅协作者", link_tenant_readable: "链接：企业内所有人", link_anyone_readable: "链接：所有人",
    agendas: "日历和任务", agendasHint: "每个人的日程和任务。成员之间只能看到对方是忙是闲。",
    nothingPlanned: "暂无安排。", dueOn: "截止", eventTitle: "标题", eventStart: "开始时间（1 小时）", eventZone: "时区", eventOwner: "所属成员",
    connected: "已授权的成员", nobodyConnected: "还没有人授权。", revoke: "撤销授权",
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

export const momentOf = (ms) => new Date(ms).toLocaleString(locale(), { timeZone: zone, dateStyle: "medium", timeStyle: "short" });
// The day of a message as it is called today.
export function dayOf(ms) {
  const dayIn = (date) => date.toLocaleDateString("en-CA", { timeZone: zone });
  const [day, now] = [dayIn(new Date(ms)), new Date()];
  if (day === dayIn(now)) return say("today");
  if (day === dayIn(new Date(now - 86_400_000))) return say("yesterday");
  const year = day.slice(0, 4) === dayIn(now).slice(0, 4) ? {} : { year: "numeric" };
  return new Date(ms).toLocaleDateString(locale(), { timeZone: zone, weekday: "short", month: "long", day: "numeric", ...year });
}

export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  try { localStorage.setItem("language", language); } catch { /* private mode */ }
}

export function label(root) {
  document.documentElement.lang = locale();
  for (const node of root.querySelectorAll("[data-label]")) node.textContent = say(node.dataset.label);
  for (const node of root.querySelectorAll("[data-name]")) node.setAttribute("aria-label", say(node.dataset.name));
  for (const node of root.querySelectorAll("[data-placeholder]")) node.placeholder = say(node.dataset.placeholder);
  for (const node of root.querySelectorAll("[data-title]")) {
    node.title = say(node.dataset.title);
    if (node.matches("button")) node.setAttribute("aria-label", node.title);
  }
}
