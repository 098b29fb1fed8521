"""Which settings are refused, in what words, and which names are taken for typing errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.process import settings_values
from bot.settings import NAMES, SettingsError, load, misspelt_names

APP = {
    "feishu_app_id": "cli_a",
    "feishu_app_secret": "s",
    "feishu_encrypt_key": "e",
    "feishu_verification_token": "v",
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a .env, and with a place to write to."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("OPENAI_BASEURL", "OPENAI_BASE_URL"),
        ("OPENAI_APIKEY", "OPENAI_API_KEY"),
        ("FEISHU_APPID", "FEISHU_APP_ID"),
        ("FEISHU_APP_SECRETS", "FEISHU_APP_SECRET"),
        ("FEISHU_ENCRYPTKEY", "FEISHU_ENCRYPT_KEY"),
        ("FEISHU_DOMIAN", "FEISHU_DOMAIN"),
        ("SUPABASE_PUBLISHABLE_KEYS", "SUPABASE_PUBLISHABLE_KEY"),
        ("SUPABASE_JWT_SECERT", "SUPABASE_JWT_SECRET"),
        ("SUPABSE_URL", "SUPABASE_URL"),
        ("FEISU_APP_ID", "FEISHU_APP_ID"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("DATABSE_URL", "DATABASE_URL"),
        ("LOGLEVEL", "LOG_LEVEL"),
        ("INLINE_WORKERS", "INLINE_WORKER"),
        ("openai_modell", "OPENAI_MODEL"),
    ],
)
def test_a_typing_error_is_told_with_the_name_that_was_meant(typed: str, meant: str) -> None:
    assert settings_values.misspelt_names([typed], NAMES) == {typed: meant}


@pytest.mark.parametrize(
    "name",
    ["OPENAI_ORG_ID", "OPENAI_ORGANIZATION", "OPENAI_API_KEY", "openai_api_key", "FEISHU_PORT",
     "FEISHU_PORT_8080_TCP", "FEISHU_SERVICE_HOST", "SUPABASE_ACCESS_TOKEN", "SUPABASE_DB_PASSWORD",
     "PATH", "HOME", "PORTS_DIR", "XDG_DATA_DIRS", "PGDATABASE", "MCP_SERVERS", "LOG_FORMAT",
     "PIP_CONFIG_FILE", "MODEL", "REPLY_TO", "DATABASE_POOL_SIZE"],
)  # fmt: skip
def test_what_is_no_typing_error_is_left_alone(name: str) -> None:
    assert settings_values.misspelt_names([name], NAMES) == {}


def test_a_typing_error_in_the_file_is_found_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("# OPENAI_MODLE=no\n export OPENAI_BASEURL = http://x\nA=1\n")
    monkeypatch.setenv("FEISHU_APPID", "cli_secret")

    assert misspelt_names() == {
        "FEISHU_APPID": "FEISHU_APP_ID",
        "OPENAI_BASEURL": "OPENAI_BASE_URL",
    }


def test_a_missing_setting_that_was_misspelt_says_so_without_its_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FEISHU_ENCRYPTKEY", "the-key-itself")
    with pytest.raises(SettingsError) as raised:
        load(**{**APP, "feishu_encrypt_key": ""})

    assert str(raised.value).endswith("FEISHU_ENCRYPTKEY is set: was FEISHU_ENCRYPT_KEY meant?")
    assert "the-key-itself" not in str(raised.value)


KEYS = {
    "supabase_url": "https://x.supabase.co",
    "supabase_publishable_key": "k",
    "supabase_secret_key": "k",
}
PUBLIC = (
    "0.0.0.0/0", "::/0", "0.0.0.0/1, 128.0.0.0/1", "172.18.0.0/16, 192.0.0.0/8", "203.0.113.7",
    "::ffff:0:0/96",
)  # fmt: skip
DATABASE = "DATABASE_URL is not a connection string such as postgresql://USER:PASSWORD@HOST:5432"


@pytest.mark.parametrize("app", [APP, {}], ids=["app", "sandbox"])
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"database_url": "http://db.example/x"}, DATABASE),
        ({"database_url": "postgresql://u:hush/1@h]:5432/x"}, DATABASE),
        ({"database_url": "hush"}, DATABASE),
        ({"supabase_url": "project.supabase.co"}, "SUPABASE_URL is not a URL such as https://PROJ"),
        ({"supabase_url": "https://"}, "SUPABASE_URL is not a URL such as https://PROJ"),
        ({"supabase_url": "https://x.supabase.co"}, "SUPABASE_PUBLISHABLE_KEY is not set: it"),
        (
            {"supabase_url": "https://x.supabase.co", "supabase_publishable_key": "k"},
            "SUPABASE_SECRET_KEY is not set: it is in the Supabase dashboard (Project Settings",
        ),
        (KEYS, "Neither SUPABASE_JWT_PRIVATE_KEY nor SUPABASE_JWT_SECRET is set: one of"),
        (
            {**KEYS, "supabase_jwt_private_key": "hush"},
            "SUPABASE_JWT_PRIVATE_KEY is no JSON: it is the private key that `supabase gen",
        ),
        (
            {**KEYS, "supabase_jwt_private_key": '{"kty":"hush"}', "supabase_jwt_secret": "s"},
            "SUPABASE_JWT_PRIVATE_KEY is a key of another kind than ES256 and RS256",
        ),
        ({"supabase_secret_key": "hush…"}, "SUPABASE_SECRET_KEY holds a character that no key has"),
        ({"openai_api_key": "sk hush"}, "OPENAI_API_KEY holds a character that no key has"),
        ({"openai_base_url": "api.openai.com/v1"}, "OPENAI_BASE_URL is not a URL such as https://"),
        ({"openai_base_url": "https://api openai"}, "OPENAI_BASE_URL is not a URL such as https://"),
        ({"openai_base_url": "http://h:port/v1"}, "OPENAI_BASE_URL is not a URL such as https://"),
        ({"embedding_base_url": "ftp://h"}, "EMBEDDING_BASE_URL is not a URL such as https://"),
        ({"feishu_domain": "open.feishu.cn"}, "FEISHU_DOMAIN is not an origin such as https://open"),
        ({"feishu_domain": "https://open.feishu.cn/open-apis"}, "FEISHU_DOMAIN is not an origin"),
        ({"feishu_domain": "http://127.0.0.1.evil.example"}, "FEISHU_DOMAIN must be an https://"),
        ({"model_timeout_seconds": "soon"}, "MODEL_TIMEOUT_SECONDS is not valid: it must be a"),
        ({"data_dir": "file/data"}, "DATA_DIR is 'file/data': nothing can be written there."),
        ({"data_dir": "file"}, "DATA_DIR is 'file': nothing can be written there."),
        *(({"host": one}, "HOST is not an IP address") for one in ("localhost:8080", "my-laptop")),
        *(
            ({"console_networks": one}, "CONSOLE_NETWORKS is not a list of networks")
            for one in ("172.18.0.0/33", "172.18.0.0/16 10.0.0.0/8", "172.18.0.0/16,")
        ),
        *(({"console_networks": one}, "CONSOLE_NETWORKS has addresses of the") for one in PUBLIC),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_one_sentence_without_its_value(
    tmp_path: Path, app: dict[str, str], given: dict[str, Any], sentence: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError) as raised:
        load(**{**app, **given})

    assert str(raised.value).startswith(sentence)
    assert "hush" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("missing", ["feishu_encrypt_key", "feishu_verification_token"])
def test_the_webhook_needs_both_keys(missing: str) -> None:
    with pytest.raises(SettingsError, match=f"{missing.upper()} is not set"):
        load(**{**APP, missing: ""})


@pytest.mark.parametrize(
    "given",
    [
        {"database_url": "postgresql:///postgres?host=/tmp/x"},
        {"database_url": "host=db.example dbname=x user=y"},
        {"database_url": "postgres://u:p%40ss@h.example:6543/postgres?sslmode=require"},
        {"openai_base_url": "http://localhost:11434/v1"},
        {"feishu_domain": "https://open.larksuite.com/"},
        {"feishu_domain": "http://localhost:8900"},
    ],
)
def test_what_is_right_is_taken(given: dict[str, str]) -> None:
    load(**{**APP, **given})


def test_credentials_of_the_sandbox_that_are_damaged_say_how_to_get_new_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / "sandbox.json").write_text('{"feishu')
    with pytest.raises(SettingsError, match="is damaged: delete it"):
        load(data_dir=tmp_path)


@pytest.mark.parametrize("written", ["\nOPENAI_MODEL m\nPORT=1\n", "\nOPENAI_API_KEY='sk\n"])
def test_a_line_of_the_environment_file_that_says_nothing_is_named(
    tmp_path: Path, written: str
) -> None:
    (tmp_path / ".env").write_text(written)
    with pytest.raises(SettingsError, match=r"\.env cannot be read, line 2: write NAME=value"):
        load(**APP)


def test_an_environment_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"OPENAI_MODEL=\xff\xfe\n")
    with pytest.raises(SettingsError, match=r"\.env cannot be read"):
        load(**APP)
