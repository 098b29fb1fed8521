"""What the offline model says of itself; a test tries every example in it."""

from __future__ import annotations

from collections.abc import Mapping

from bot.text.languages import Language

HELP: Mapping[Language, str] = {
    "zh": """我是离线模型：没有设置模型密钥，所以按固定规则回答。我能听懂：

- **事实**：“记住我们的发布日是 3 月 3 日”“我叫小明，记住”，之后问“发布日是哪天？”“我叫什么？”；
  `忘掉发布日` 会永久删除它，`不对，现在是 3 月 4 日` 会更正最后记下的一条
- **新的笔记**：“建一条笔记，标题是意面，标签是意大利菜、晚餐”
- **改笔记**：“给那条笔记加上标签快手”“把第一条笔记的晚餐标签去掉”“把标题改成番茄意面”“删除那条笔记”
- **看笔记**：“列出我的笔记”“搜索笔记 意面”“第二条有什么标签？”
- **提醒**：“明天下午 3 点提醒我们开会”“每天 18:00 提醒大家写日报”“取消开会的提醒”

`/帮助` 列出全部命令。设置 `OPENAI_API_KEY` 后，由语言模型来回答。""",
    "en": """I am the offline model: no model key is set, so I follow fixed rules. I understand:

- **Facts**: “remember that our launch is on 3 March”, “my name is Alice, remember that”; then
  “when is our launch?”, “what is my name?”; `forget our launch` deletes it for good, and
  `no, it is now on 4 March` corrects what was kept last
- **New notes**: “create a note about pasta with tags italian, dinner”
- **Changes**: “add the tag quick to that note”, “remove the dinner tag from the first note”,
  “change the title to Pizza”, “delete that note”
- **Reading**: “list my notes”, “search notes for pasta”, “what tags does the second note have?”
- **Reminders**: “remind us tomorrow at 3 pm to meet”, “every day at 18:00 remind me to log off”,
  “cancel the reminder to meet”

`/help` shows my commands. With `OPENAI_API_KEY` set, a language model answers instead.""",
}
