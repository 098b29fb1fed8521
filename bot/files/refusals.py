"""Why a file was not read, in one sentence: to people, and in English to the model. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bot.files.reading import Limits, Reason
from bot.text.languages import Language

_WHY: Mapping[Reason, tuple[str, str]] = {
    "off": ("这里没有开启读取文件", "reading files is switched off here"),
    "kind": (
        "我只读 txt、md、csv、pdf、docx 和 xlsx 文件",
        "I read txt, md, csv, pdf, docx and xlsx files only",
    ),
    "size": ("它超过了 {megabytes} MB 的上限", "it is larger than the limit of {megabytes} MB"),
    "empty": ("它是空的", "it is empty"),
    "encrypted": (
        "它有密码保护，或是旧版 Office 格式；请发送没有密码的新格式文件",
        "it has a password, or is of an old Office format; send it without one, in the new format",
    ),
    "no_text": (
        "里面没有文字（可能是扫描件或图片）",
        "it holds no text (perhaps scanned pages or pictures)",
    ),
    "other_content": (
        "它的内容与文件名的类型不符",
        "its content is not what the ending of its name says",
    ),
    "damaged": ("它已损坏，或格式不对", "it is damaged or not of the right format"),
    "too_complex": ("它的内容太复杂，我读不了", "it is too complex to read"),
    "time": ("读取用时超过了 {seconds} 秒", "reading it took longer than {seconds} seconds"),
    "many": ("一次最多读 {files} 个文件", "I read at most {files} files at a time"),
    "busy": (
        "现在正在读取其他文件，请稍后再试",
        "other files are being read right now; try again in a moment",
    ),
    "unavailable": (
        "现在没能从飞书下载它，请稍后再试，或检查应用的 im:resource 权限",
        "it could not be loaded from Feishu just now; try again later, or check the app's scope "
        "im:resource",
    ),
}
_NOT_READ: Mapping[Language, str] = {
    "zh": "我读不了文件“{name}”：{why}。",
    "en": "I cannot read the file “{name}”: {why}.",
}
MOST_FILES = 4


def not_read(name: str, reason: Reason, limits: Limits, language: Language) -> str:
    """`name` is a `safe_name`; as it is shown, before it is escaped."""
    why = _WHY[reason][0 if language == "zh" else 1]
    told = why.format(megabytes=limits.megabytes, seconds=limits.seconds, files=MOST_FILES)
    return _NOT_READ[language].format(name=name, why=told)
