"""Links to documents are found where people write them, and nothing else is taken for one."""

from __future__ import annotations

from bot.documents.document import MOST_LINKS, DocumentLink, document_link, links_in, without_links
from tests.support.rows import every_row

TOKEN = "AbCdEfGhIjKlMnOpQrStUvWxYz1"
HOST = "acme.feishu.cn"


@every_row(
    ("url", "link"),
    [
        (f"https://{HOST}/docx/{TOKEN}", DocumentLink("docx", TOKEN, HOST)),
        (f"https://{HOST}/docx/{TOKEN}?from=x#abc", DocumentLink("docx", TOKEN, HOST)),
        (f"https://{HOST}/wiki/{TOKEN}?table=tbl1", DocumentLink("wiki", TOKEN, HOST, "tbl1")),
        (f"https://{HOST}/sheets/{TOKEN}?sheet=ab1", DocumentLink("sheet", TOKEN, HOST, "ab1")),
        (f"https://{HOST}/base/{TOKEN}?table=t&view=v", DocumentLink("bitable", TOKEN, HOST, "t")),
        (f"https://a.larksuite.com/docx/{TOKEN}", DocumentLink("docx", TOKEN, "a.larksuite.com")),
        (f"https://{HOST}/slides/{TOKEN}", DocumentLink("other", TOKEN, HOST)),
        (f"https://{HOST}/docs/{TOKEN}", DocumentLink("other", TOKEN, HOST)),
        (f"http://{HOST}/docx/{TOKEN}", None),
        (f"https://feishu.cn.evil.example/docx/{TOKEN}", None),
        (f"https://evilfeishu.cn/docx/{TOKEN}", None),
        (f"https://{HOST}/docx/../{TOKEN}", None),
        (f"https://{HOST}/docx/a", None),
        (f"https://{HOST}/calendar/{TOKEN}", None),
        ("https://[", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_link_says_what_it_leads_to(url: str, link: DocumentLink | None) -> None:
    assert document_link(url) == link


@every_row("kind", ["docx", "sheet", "bitable", "wiki"])
def test_the_url_of_a_link_leads_to_the_same(kind: str) -> None:
    link = DocumentLink(kind, TOKEN, HOST, "tbl1" if kind != "docx" else "")  # type: ignore[arg-type]
    assert document_link(link.url) == link


def test_links_are_found_in_text_each_once() -> None:
    one, two = f"https://{HOST}/docx/{TOKEN}", f"https://{HOST}/wiki/{TOKEN}"
    text = f"看一下（{one}），还有 [计划]({two})。{one}"
    assert [found.kind for found in links_in(text)] == ["docx", "wiki"]
    assert [found.token for found in links_in(f"{one}说了什么？")] == [TOKEN]
    assert without_links(f"看看{one}说了什么？").split() == ["看看", "说了什么？"]
    many = " ".join(f"https://{HOST}/docx/{TOKEN}{number}" for number in range(9))
    assert len(links_in(many)) == MOST_LINKS
    assert links_in("no links, https://example.com/docx/x") == []
