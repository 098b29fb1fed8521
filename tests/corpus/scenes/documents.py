"""Connecting an account, documents told to all or to one or refused, comments, calendar, tasks."""

from tests.corpus.scene import Reply, Scene, call

PROFILE = "second"
SECRET = "Quillfeather"


def _read(url: str) -> list[Reply]:
    read: Reply = {"reply": call("read_document", url=url), "times": 1, "after_tool": False}
    told: Reply = {
        "when": {"in": "last", "contains": SECRET},
        "reply": {"text": f"It is {SECRET}."},
    }
    return [read, told, "I don't know."]


def connect(s: Scene, who: str = "Ann") -> None:
    s.ask(who, s.t("/connect", "/连接"), chat="p2p")
    s.follow_link(who)


def connecting(s: Scene) -> None:
    s.ask("Bob", s.t("/connect", "/连接"), chat="p2p")
    s.follow_link("Bob", approve=False)
    connect(s)
    s.ask("Ann", s.t("/connect", "/连接"), chat="p2p")
    s.press("Ann", s.t("Disconnect", "断开连接"))
    s.ask("Ann", s.t("/connect", "/连接"), chat="p2p")
    s.follow_link("Bob")


def told(s: Scene) -> None:
    s.calm_s = 0.3
    connect(s)
    secret = s.t(f"The launch code is {SECRET}.", f"发布代码是 {SECRET}。")
    asked = s.t("what is the launch code in {} ?", "{} 里的发布代码是什么？")
    public = s.document("Ann", s.t("Plan", "计划"), secret, link="tenant_readable")["url"]
    s.ask("Ann", asked.format(public), model=_read(public))
    own = s.document("Ann", s.t("Diary", "日记"), secret)["url"]
    s.ask("Ann", asked.format(own), model=_read(own))
    s.press("Ann", s.t("Show me", "查看"), model=_read(own))
    other = s.document("Bob", s.t("Letter", "信"), secret)["url"]
    s.ask("Ann", asked.format(other), model=_read(other))
    s.ask("Bob", asked.format(public), model=_read(public))
    s.ask("Ann", asked.format(own), chat="p2p", model=_read(own))
    s.ask(
        "Ann",
        s.t("search my documents for the plan", "在我的文档里搜索计划"),
        chat="p2p",
        model=[call("search_documents", query=s.t("Plan", "计划")), s.t("One.", "一个。")],
    )


def comments(s: Scene) -> None:
    made = s.document(
        "Ann", s.t("Plan", "计划"), s.t("Paint the pier.", "刷栈桥。"), link="tenant_readable"
    )
    token = made["token"]
    thread = s.comment(
        "Ann",
        token,
        s.t("@Memo what is the plan?", "@Memo 计划是什么？"),
        model=s.t("Paint.", "刷漆。"),
    )
    s.comment(
        "Bob",
        token,
        s.t("@Memo in which colour?", "@Memo 什么颜色？"),
        comment_id=thread,
        model=s.t("Blue.", "蓝色。"),
    )
    s.comment("Bob", token, s.t("nobody is asked", "没有问谁"))
    s.comment("Ann", token, s.t("@Memo /help", "@Memo /帮助"))


def calendar(s: Scene) -> None:
    day = s.next_wednesday()
    s.event("Bob", "Quillfeather surgery", day, "09:00:00", "10:30:00")
    look = call("look_at_calendar", who=["Bob"], when=day)
    when = s.t("is Bob free then, in his calendar?", "Bob 的日历那天有空吗？")
    s.ask("Ann", when, model=[look, s.t("Connect first.", "先连接。")])
    s.follow_link("Ann")
    s.ask("Ann", when, model=[look, s.t("Until nine.", "九点前。")])
    book = call("book_meeting", title=s.t("launch", "发布"), at=f"{day}T15:00", with_whom=["Bob"])
    wish = s.t("book a meeting with Bob", "跟 Bob 约个会议")
    s.ask("Ann", wish, model=[book, s.t("Connect first.", "先连接。")])
    s.follow_link("Ann")
    s.ask("Ann", wish, model=[book, s.t("Please confirm.", "请确认。")])
    s.press("Bob", s.t("Confirm", "确认"))
    s.press("Ann", s.t("Confirm", "确认"))
    s.press("Ann", s.t("Undo (10 minutes)", "撤销（10 分钟内）"))
    s.ask("Ann", wish, model=[book, s.t("Please confirm.", "请确认。")])
    s.press("Ann", s.t("Cancel", "取消"))


def tasks(s: Scene) -> None:
    day = s.next_wednesday()
    s.task("Ann", "Quillfeather letter", day)
    due = call("list_due_tasks", when=day)
    asked = s.t("which tasks are due?", "有哪些任务到期？")
    s.ask("Ann", asked, chat="p2p", model=[due, s.t("Connect first.", "先连接。")])
    s.follow_link("Ann")
    s.ask("Ann", asked, chat="p2p", model=[due, s.t("One.", "一个。")])
    s.ask("Ann", asked, model=[due, s.t("One.", "一个。")])
    make = call("make_task", title=s.t("slides", "幻灯片"), for_whom="Bob", due=day)
    s.ask(
        "Ann",
        s.t("make a task for Bob: slides", "给 Bob 建个任务：幻灯片"),
        model=[make, s.t("Connect first.", "先连接。")],
    )
    s.follow_link("Ann", approve=False)
    s.ask(
        "Bob",
        s.t("make a task for me: slides", "给我建个任务：幻灯片"),
        model=[call("make_task", title="slides"), s.t("Connect first.", "先连接。")],
    )


SCENES = {
    "connecting": connecting,
    "told": told,
    "comments": comments,
    "calendar": calendar,
    "tasks": tasks,
}
