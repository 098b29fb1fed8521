"""Whom answers address, as the environment says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.mentions import MentionTemplate
from bot.settings import SettingsError, load, usual_data_dir

MEANT = {
    "sender": ("sender", "true", "1", "yes", True),
    "meant": ("meant", "Meant"),
    "off": ("off", "false", "0", "no", False),
}


@pytest.mark.parametrize(
    ("written", "means"), [(value, mode) for mode, values in MEANT.items() for value in values]
)
def test_auto_mention_takes_words_and_flags(tmp_path: Path, written: object, means: str) -> None:
    assert load(auto_mention=written, data_dir=tmp_path).auto_mention == means


def test_the_sender_is_addressed_by_default_with_a_space(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path)
    assert (settings.auto_mention, settings.template) == ("sender", MentionTemplate())


def test_a_template_is_read_once_for_all(tmp_path: Path) -> None:
    settings = load(mention_template="Hi {at}! ", data_dir=tmp_path)
    assert settings.template == MentionTemplate("Hi ", "! ")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("auto_mention", "maybe", "AUTO_MENTION is not valid: it must be sender (true), meant"),
        ("mention_template", "hello", "MENTION_TEMPLATE is not valid: it must hold {at} once"),
        ("mention_template", "# {at} ", "MENTION_TEMPLATE is not valid: it must begin with"),
    ],
)
def test_a_wrong_value_is_named_in_one_sentence(
    tmp_path: Path, name: str, value: str, sentence: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(data_dir=tmp_path, **{name: value})
    assert str(caught.value).startswith(sentence)


def test_a_checkout_keeps_its_data_beside_itself_and_a_package_in_a_folder_of_the_user(
    tmp_path: Path,
) -> None:
    assert usual_data_dir() == Path("data")
    assert usual_data_dir(tmp_path).is_absolute()
    assert usual_data_dir(tmp_path).name == "feishu-memory-bot"


@pytest.mark.parametrize("path", ["", "/", "/chat/completions", "/embeddings/", "/models"])
@pytest.mark.parametrize("name", ["openai_base_url", "embedding_base_url"])
def test_an_endpoint_is_known_by_the_address_of_any_call(
    tmp_path: Path, name: str, path: str
) -> None:
    url = "https://llm.example/v1"
    assert getattr(load(data_dir=tmp_path, **{name: url + path}), name) == url
