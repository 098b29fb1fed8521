"""Threads that are longer than what a prompt shows, and their summaries."""

from tests.corpus.scene import Scene

PROFILE = "second"


def window(s: Scene) -> None:
    s.calm_s = 0.5
    root = s.ask("Ann", s.t("let us plan the regatta", "我们来计划帆船赛"), model="OK.")
    for number in range(1, 8):
        who = ("Ann", "Bob")[number % 2]
        s.ask(
            who,
            s.t(f"point {number} is boat {number}", f"第{number}点是{number}号船"),
            under=root,
            model=f"OK {number}.",
        )
    s.ask("陈晨", s.t("what are all points?", "所有要点是什么？"), under=root)


SCENES = {"window": window}
