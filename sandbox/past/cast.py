"""Who is in a group with a past, from when until when.

Two people share a name, one left and came back, some left, some came late; three are the people of
the sandbox's own groups.
"""

from dataclasses import dataclass

from sandbox.world.entities import BOT, USER, SandboxPerson
from sandbox.world.state import stable_id
from sandbox.world.system_messages import INVITED, JOINED, LEFT, REMOVED

FIRST_DAY = "2024-07-01"


@dataclass(frozen=True, slots=True)
class CastMember:
    """`key` is how scenes call them. `stays`: (from, until) as days; "" is until today."""

    key: str
    name: str
    stays: tuple[tuple[str, str], ...] = ((FIRST_DAY, ""),)
    kind: str = USER
    languages: str = "en zh"
    left_by: str = LEFT
    joined_by: str = INVITED

    @property
    def open_id(self) -> str:
        known = self.key in ("Alice", "Bob", "陈晨")
        return stable_id("ou_", self.key if known else f"past:{self.key}")

    def person(self) -> SandboxPerson:
        union_id = stable_id("on_", self.key)
        return SandboxPerson(self.open_id, self.name, self.kind, union_id=union_id)

    def is_there(self, day: str) -> bool:
        """Whether they are in the group on a whole day."""
        return any(since < day and (not until or day < until) for since, until in self.stays)


CAST = (
    CastMember("Alice", "Alice"),
    CastMember("陈晨", "陈晨", ((FIRST_DAY, "2025-04-26"), ("2025-08-25", "")), languages="zh"),
    CastMember("Maria Lopez", "Maria Lopez", languages="en"),
    CastMember("Tom Baker", "Tom Baker", ((FIRST_DAY, "2025-12-13"),), languages="en"),
    CastMember("王磊", "王磊", languages="zh"),
    CastMember("赵敏", "赵敏", languages="zh"),
    CastMember("刘洋", "刘洋"),
    CastMember("Chen Hao", "Chen Hao", (("2024-08-01", ""),), languages="en"),
    CastMember("Priya Nair", "Priya Nair", (("2024-09-01", ""),), languages="en"),
    CastMember("孙浩", "孙浩", (("2024-10-08", "2025-11-15"),), languages="zh", left_by=REMOVED),
    CastMember("Emma Novak", "Emma Novak", (("2025-03-10", ""),), languages="en", joined_by=JOINED),
    CastMember("周婷", "周婷", (("2025-04-28", ""),), languages="zh"),
    CastMember("Li Wei", "Li Wei", (("2025-07-01", ""),), languages="en"),
    CastMember("王磊2", "王磊", (("2025-08-04", ""),), languages="zh"),
    CastMember("Bob", "Bob", (("2026-02-02", ""),), languages="en"),
    CastMember("Pipeline", "Pipeline", kind=BOT, languages=""),
    CastMember("审批助手", "审批助手", (("2024-09-02", ""),), kind=BOT, languages=""),
    CastMember("HelpDesk", "HelpDesk", (("2025-01-06", ""),), kind=BOT, languages=""),
)
FOUNDER = CAST[0]
BY_KEY = {one.key: one for one in CAST}
SPEAKERS = {
    language: tuple(one for one in CAST if language in one.languages.split())
    for language in ("en", "zh")
}
