"""Whether a question is about a file or picture that stands before it, English and Chinese. Pure.

A file that nobody asks about is not read. Who sent one themselves may just point at it (“what is in
this?”); somebody else's has to be named as what it is (“the picture”, “Bob's file”).
"""

from __future__ import annotations

import re
from typing import Literal

Reference = Literal["", "pointed_at", "named"]

_TIMES = (
    r"(?:week|month|year|quarter|time|morning|afternoon|evening|night|weekend"
    r"|mon|tues|wednes|thurs|fri|satur|sun)"
)
_NOUN = (
    r"(?:files?|pictures?|pics?|images?|photos?|screenshots?|documents?|docs?|pdfs?|attachments?"
    r"|spreadsheets?|sheets?|tables?|slides?|charts?|diagrams?)\b"
)
_NAMED = re.compile(
    rf"\b(?:the|this|that|these|those|my|his|her|their|above|attached|last|\w+['’]s)\s+"
    rf"(?:\w+\s+){{0,2}}?{_NOUN}"
    "|(?:这|那|上面|刚才|刚刚|刚发|上一|他|她|的)[^，。,.?？!！\\n]{0,6}?"
    "(?:文件|图|照片|截图|文档|附件|表格|幻灯片)"
    "|^\\W*(?:文件|图片?|照片|截图|文档|附件|表格)(?:里|中|上|内)",
    re.IGNORECASE,
)
_POINTED_AT = re.compile(
    rf"\b(?:this|these)\b(?!\s+{_TIMES})|\b(?:attached|above)\b|\bi (?:just )?sent\b"
    r"|\b(?:summari[sz]e|translate|read|explain|describe|review|look at|check|transcribe)\s+"
    r"(?:it|that|them)\b"
    r"|\bwhat\s+(?:does|do)\s+(?:it|they)\s+(?:say|show|mean|contain)\b"
    r"|\bwhat(?:['’]s| is)\s+(?:in|on)\s+(?:it|here)\b"
    "|这(?:是|个(?!月|周|星期|季度|礼拜)|张|份|些|里|段|幅|篇|上面|怎么|说|写|讲|$)|上面的?|刚才?发的"
    "|(?:帮我|请|麻烦)?(?:看看|看一下|看下|翻译一下|总结一下|读一下|解释一下)\\W*$"
    "|里面(?:有|写|说|是)|写了?(?:什么|啥)",
    re.IGNORECASE,
)


def reference(question: str) -> Reference:
    """How the question refers to something that was sent before it, if it does."""
    if _NAMED.search(question):
        return "named"
    return "pointed_at" if _POINTED_AT.search(question) else ""
