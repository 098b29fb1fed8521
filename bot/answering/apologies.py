"""What is said in place of an answer when the model gives none, and what to do next. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bot.text.languages import Language, Sentence

_SORRY: Mapping[Language, str] = {
    "zh": "抱歉，我暂时无法得到模型的回答。你的问题已经记下，请稍后再问一次。",
    "en": "Sorry, I cannot get an answer from the model right now. Your question is kept; "
    "please ask again in a moment.",
}
_EMPTY: Mapping[Language, str] = {
    "zh": "抱歉，模型这次给了空的回答。请再问一次，或换个说法；你的问题已经记下。",
    "en": "Sorry, the model gave an empty answer this time. Please ask again, or put it in other "
    "words; your question is kept.",
}
_TOO_LONG: Mapping[Language, str] = {
    "zh": "抱歉，这超出了模型一次能读的长度。请把问题缩短，或少带一些文件，再问一次；"
    "短的问题也这样的话，请告诉你们的管理员。你的问题已经记下。",
    "en": "Sorry, this is longer than the model can read at once. Please ask with a shorter "
    "message or fewer files; if short questions meet this too, tell your administrator. Your "
    "question is kept.",
}
_SAID: Mapping[str, Mapping[Language, str]] = {"empty": _EMPTY, "too_long": _TOO_LONG}
# What passes only when an operator mends it; the keys are those of `NEXT_STEPS`.
_NOT_SET_UP: Mapping[str, Sentence] = {
    "wrong_key": Sentence("its key is refused", "密钥无效"),
    "not_allowed": Sentence("its key may not use the model", "密钥无权使用该模型"),
    "no_such_model": Sentence("there is no model of the configured name", "没有所配置的模型"),
    "quota_used_up": Sentence("its account is used up", "账户额度已用完"),
    "no_completion": Sentence(
        "the endpoint answered with something that is not a chat completion",
        "接口返回的内容不是聊天回答",
    ),
}
_TELL: Mapping[Language, str] = {
    "zh": "抱歉，我无法得到模型的回答：{what}。这不会自己好，"
    "请告诉你们的管理员。你的问题已经记下。",
    "en": "Sorry, I cannot get an answer from the model: {what}. This does not pass by itself; "
    "please tell your administrator. Your question is kept.",
}


def apology(reason: str, language: Language) -> str:
    """What is said when the model could not be asked, or gave nothing (`empty`)."""
    if what := _NOT_SET_UP.get(reason):
        return _TELL[language].format(what=what.said(language))
    return _SAID.get(reason, _SORRY)[language]


def is_apology(text: str) -> bool:
    """Whether a text says only that the model could not be asked."""
    begins = (
        *_SORRY.values(),
        *(text for texts in _SAID.values() for text in texts.values()),
        *(one.partition("{")[0] for one in _TELL.values()),
    )
    return text.startswith(begins)
