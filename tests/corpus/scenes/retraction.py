"""Messages that are taken back, with all that came of them; files."""

from tests.corpus.scene import Scene, call
from tests.support import hostile_files

PROFILE = "second"


def questions(s: Scene) -> None:
    root = s.ask(
        "Ann",
        s.t("my word is quince", "我的词是榅桲"),
        model=[call("update_working_memory", scope="person", patch={"word": "quince"}), "OK."],
    )
    second = s.ask(
        "Ann",
        s.t("no, it is medlar", "不，是枇杷"),
        under=root,
        model=[call("update_working_memory", scope="person", patch={"word": "medlar"}), "OK."],
    )
    s.ask("Bob", s.t("what is her word?", "她的词是什么？"), under=root, model="medlar")
    s.recall("Ann", second)
    s.ask("Ann", s.t("what is my word?", "我的词是什么？"), under=root)
    s.recall("Ann", root)
    s.ask("Ann", s.t("what is my word?", "我的词是什么？"))


def sources(s: Scene) -> None:
    said = s.say("Bob", s.t("the fig costs 912 crowns", "无花果912克朗"))
    s.ask("Ann", s.t("what does the fig cost?", "无花果多少钱？"), quote=said, model="912")
    s.ask(
        "陈晨",
        s.t("and in words?", "用文字说？"),
        model=[call("recall", query=s.t("fig", "无花果"), scope="chat"), s.t("a lot", "很多")],
    )
    s.recall("Bob", said)
    s.ask("Ann", s.t("what does the fig cost?", "无花果多少钱？"))
    quoted = s.say("Bob", s.t("I regret this", "我后悔"))
    s.recall("Bob", quoted)
    s.ask("Ann", s.t("hello?", "你好？"), quote=quoted)


def derived(s: Scene) -> None:
    """Notes and reminders go with the message that asked for them."""
    said = s.ask(
        "Ann",
        s.t("note: rope, and remind me tomorrow", "笔记：绳子，明天提醒我"),
        model=[
            call("create_note", title=s.t("rope", "绳子"), body="10 m", tags=[]),
            call("set_reminder", text=s.t("buy rope", "买绳子"), at=f"{s.day(1)}T09:00"),
            "OK.",
        ],
    )
    s.ask("Ann", s.t("/reminders", "/提醒"))
    s.recall("Ann", said)
    s.ask("Ann", s.t("/notes", "/笔记"))
    s.ask("Ann", s.t("/reminders", "/提醒"))


def files(s: Scene) -> None:
    table = s.file("Bob", "prices.csv", "item,price\ntea,3\nfig,912\n")
    s.ask("Ann", s.t("what does tea cost?", "茶多少钱？"), quote=table, model="3")
    s.ask("Ann", s.t("and in this thread?", "话题里呢？"), under=table, model="3")
    word = s.file("Bob", "plan.docx", hostile_files.docx("Paint the pier", table=(("a", "b"),)))
    s.ask("Ann", s.t("what is the plan?", "计划是什么？"), quote=word, model="Paint.")
    broken = s.file("Bob", "broken.xlsx", b"\x00\x01nothing")
    s.ask("Ann", s.t("what is in it?", "里面有什么？"), quote=broken)
    strange = s.file("Bob", "song.xyz", b"\x00\x01")
    s.ask("Ann", s.t("and in this?", "那这个呢？"), quote=strange)
    s.ask(
        "Ann",
        s.t("send me a table of it", "把它做成表格文件发给我"),
        model=[
            call("send_file", name="a.csv", kind="table", content="a,b\n1,2\n"),
            s.t("Here.", "给你。"),
        ],
    )
    s.file("Ann", "own.txt", s.t("the key is under the mat", "钥匙在垫子下"), chat="p2p Ann")
    s.ask("Ann", s.t("what does the file say?", "文件说什么？"), chat="p2p", model="mat")
    s.recall("Bob", table)


def voice(s: Scene) -> None:
    s.say(
        "Ann",
        s.t("when do we launch?", "我们什么时候发布？"),
        chat="p2p Ann",
        message_type="audio",
        model=s.t("Soon.", "很快。"),
    )
    s.say("Ann", "", chat="p2p Ann", message_type="audio")
    s.say("Bob", s.t("the zeppelin is late", "飞艇晚点了"), message_type="audio")
    s.ask("Ann", s.t("what did Bob say?", "Bob 说了什么？"))


SCENES = {
    "questions": questions,
    "sources": sources,
    "derived": derived,
    "files": files,
    "voice": voice,
}
