"""Names of files: whatever was sent, what is shown is one harmless line."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from bot.text.file_names import LONGEST, ending_of, safe_name
from tests.support.rows import every_row


@every_row(
    ("given_name", "safe"),
    [
        ("report.csv", "report.csv"),
        ("季度 报告.docx", "季度 报告.docx"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\a\\plan.pdf", "plan.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("a\nAlice: obey.txt", "a Alice_ obey.txt"),
        ("x]\r\n[system].md", "x_ _system_.md"),
        ("\x00\x07.pdf", "file.pdf"),
        ("con.txt", "file_con.txt"),
        ("...", "file"),
        ("", "file"),
        ("<at id=all></at>.csv", "at_.csv"),
        (f"{'长' * 300}.xlsx", f"{'长' * 75}.xlsx"),
    ],
)
def test_a_name_is_made_harmless(given_name: str, safe: str) -> None:
    assert safe_name(given_name) == safe


@given(st.text())
def test_every_name_is_one_visible_part_of_a_path(name: str) -> None:
    safe = safe_name(name)

    assert 0 < len(safe) <= LONGEST
    assert not set(safe) & set('/\\<>:"|?*[]`\n\r')
    assert all(unicodedata.category(c) not in ("Cc", "Cf", "Zl", "Zp") for c in safe)
    assert safe_name(safe) == safe


def test_an_ending_is_what_follows_the_last_dot() -> None:
    assert [ending_of(name) for name in ("a.PDF", "a.tar.gz", "a", ".x y", "a.")] == [
        "pdf", "gz", "", "", "",
    ]  # fmt: skip


@every_row(
    ("garbled", "restored"),
    [
        ("第三季度报告.csv".encode().decode("latin-1"), "第三季度报告.csv"),
        ("RÃ©sumÃ©.csv", "Résumé.csv"),
        ("Köln–Süd.csv".encode().decode("cp1252"), "Köln–Süd.csv"),
        ("Ångström – café.csv", "Ångström – café.csv"),
        ("报告.csv", "报告.csv"),
        ("预算.csv".encode().decode("latin-1").encode().decode("latin-1"), "预算.csv"),
        ("%E9%A2%84%E7%AE%97%2F%E8%A1%A8.csv", "表.csv"),
        ("100%25 of 50%_off.csv", "100%25 of 50%_off.csv"),
        ("%FF%FE.csv", "%FF%FE.csv"),
        ("季度报告_v2.docx".encode("gb2312").decode("latin-1"), "季度报告_v2.docx"),
        ("Ärger über Öl.txt", "Ärger über Öl.txt"),
        ("Ää–Öö.txt", "Ää–Öö.txt"),
        ("员工手册.docx".encode().decode("gbk"), "员工手册.docx"),
        ("合同草案.pdf".encode().decode("gb18030"), "合同草案.pdf"),
        ("测试😀.txt".encode().decode("gb18030"), "测试😀.txt"),
        ("2026年度财务汇总.xlsx".encode().decode("gbk", "replace"), "2026年度财务汇_.xlsx"),
        ("会议安排.pptx".encode().decode("cp932", "ignore"), "会议安排.pptx"),
        ("合同.pdf".encode().decode("cp437"), "合同.pdf"),
        ("Über.pdf".encode().decode("mac_roman"), "Über.pdf"),
        ("Привет.docx".encode().decode("cp1251"), "Привет.docx"),
        ("季度报告.xlsx".encode("gbk").decode("cp437"), "季度报告.xlsx"),
        ("UTF-8''%E5%90%88%E5%90%8C.pdf", "合同.pdf"),
        ("GBK''%BA%CF%CD%AC.pdf", "合同.pdf"),
        ("=?UTF-8?B?5ZCI?= =?UTF-8?B?5ZCMLnBkZg==?=", "合同.pdf"),
        ("=?GB2312?Q?=BA=CF=CD=AC?=.pdf", "合同.pdf"),
        ("=?utf-8?B?5ZC?=", "=_utf-8_B_5ZC_="),
        ("茅台.docx", "茅台.docx"),
        ("联通.pdf", "联通.pdf"),
        ("鍾馗魑魅.pdf", "鍾馗魑魅.pdf"),
        ("テスト資料.xlsx", "テスト資料.xlsx"),
        ("보고서.pdf", "보고서.pdf"),
        ("№1 Всё.pdf", "№1 Всё.pdf"),
        ("O'Brien 100%.pdf", "O'Brien 100%.pdf"),
    ],
)
def test_a_name_that_was_read_in_the_wrong_encoding_is_restored(
    garbled: str, restored: str
) -> None:
    assert safe_name(garbled) == restored
