"""What an embedding model is told of a text: whether it is a question or a passage. Pure.

Many models are trained with words in front of either, which their model cards name, and find less
without them.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.settings import LOCAL_EMBEDDINGS, Settings

# In place of a prefix: there is none, whatever is usual for the model.
NO_PREFIX = "none"

_TASK = "Given a question, find what people said before that answers it"
_BGE = "Represent this sentence for searching relevant passages: "
_BGE_CHINESE = "为这个句子生成表示以用于检索相关文章："

# By a part of a model's name, of a question and of a passage; the first that fits.
_USUAL = (
    ("e5-mistral", f"Instruct: {_TASK}\nQuery: ", ""),
    ("e5-large-instruct", f"Instruct: {_TASK}\nQuery: ", ""),
    (LOCAL_EMBEDDINGS, "", ""),  # its server puts them in front itself
    ("e5-", "query: ", "passage: "),
    ("bge-m3", "", ""),
    ("-zh", _BGE_CHINESE, ""),
    ("bge-", _BGE, ""),
    ("mxbai-embed", _BGE, ""),
    ("snowflake-arctic-embed", _BGE, ""),
    ("nomic-embed", "search_query: ", "search_document: "),
    ("qwen3-embedding", f"Instruct: {_TASK}\nQuery: ", ""),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
)


@dataclass(frozen=True, slots=True)
class EmbeddingInputs:
    """How one model is given questions and passages: by which name, with which words before."""

    question_model: str
    passage_model: str
    question_prefix: str = ""
    passage_prefix: str = ""

    def question(self, text: str) -> str:
        return self.question_prefix + text

    def passage(self, text: str) -> str:
        return self.passage_prefix + text


def inputs_of(settings: Settings) -> EmbeddingInputs:
    """Those of the settings; a prefix that is not set is the usual one of the model."""
    model = settings.embedding_model
    question, passage = _usual(model)
    apart = model.lower() == LOCAL_EMBEDDINGS
    return EmbeddingInputs(
        f"{model}-query" if apart else model,
        f"{model}-passage" if apart else model,
        _set_or_usual(settings.embedding_query_prefix, question),
        _set_or_usual(settings.embedding_passage_prefix, passage),
    )


def _set_or_usual(prefix: str, usual: str) -> str:
    return "" if prefix.strip() == NO_PREFIX else prefix or usual


def _usual(model: str) -> tuple[str, str]:
    name = model.lower()
    prefixes = ((question, passage) for part, question, passage in _USUAL if part in name)
    return next(prefixes, ("", ""))
