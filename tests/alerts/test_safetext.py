"""Whatever text comes in, what comes out is inert in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import cmarkgfm
import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.safetext import TITLE_LIMIT, code, fenced, prose, title, visible

#: Bits that mean something in Markdown, HTML or on GitHub, put together with anything else.
SPICE = st.sampled_from(
    [
        "`", "``", "```", "|", "\n", "\n\n", "*", "_", "~~", "@octocat", "#1", "GH-1", "a/b#3", "<b>", "</code>",
        "<!--", "-->", "[x](http://e.example)", "![i](http://e.example/i.png)", "www.e.example", "https://e.example/",
        "<script>", "me@e.example", "&lt;", "&#64;", "\\", "\u202e", "\u200b", "\ufeff", "\x00", "- ", "1. ", "# ",
        "> ", "    ", "---", "===", ":+1:", "javascript:alert(1)", "deadbeef1", "$x$", "[^1]", "- [ ] ",
    ]
)  # fmt: skip
HOSTILE = st.lists(st.one_of(SPICE, st.text(max_size=6)), max_size=12).map("".join)
#: What GitHub itself links in text outside code, beyond Markdown: mentions, references, commits.
GITHUB_LINKS = re.compile(r"@\w|#\d|\bGH-\d|\b[0-9a-f]{7,40}\b", re.IGNORECASE)


def elements(markdown: str) -> Iterator[Element]:
    page = html5lib.parseFragment(
        cmarkgfm.github_flavored_markdown_to_html(markdown), treebuilder="etree", namespaceHTMLElements=False
    )
    yield from page.iter()


def outside_code(markdown: str) -> str:
    html = cmarkgfm.github_flavored_markdown_to_html(markdown)
    return re.sub(r"<[^>]*>", "", re.sub(r"<code>.*?</code>", "", html, flags=re.DOTALL))


@given(HOSTILE)
def test_a_code_span_is_one_code_element_and_nothing_else(text: str) -> None:
    tags = [element.tag for element in elements(f"before {code(text)} after")]
    assert tags == ["DOCUMENT_FRAGMENT", "p", "code"]


@given(HOSTILE, HOSTILE)
def test_a_code_span_stays_in_its_table_cell(first: str, second: str) -> None:
    table = f"| a | b |\n| --- | --- |\n| {code(first)} | {code(second)} |\n"
    tags = [element.tag for element in elements(table)]
    assert tags.count("td") == 2 and tags.count("tr") == 2 and tags.count("code") == 2
    assert set(tags) <= {"DOCUMENT_FRAGMENT", "table", "thead", "tbody", "tr", "th", "td", "code"}


@given(HOSTILE)
def test_prose_has_only_words_and_code_spans(text: str) -> None:
    for markdown in (prose(text), f"- {prose(text)}", f"| {prose(text)} |"):
        tags = {element.tag for element in elements(markdown)}
        assert tags <= {"DOCUMENT_FRAGMENT", "p", "code", "ul", "li"}, markdown
        assert not GITHUB_LINKS.search(outside_code(markdown)), markdown


@given(st.lists(HOSTILE, max_size=4))
def test_nothing_ends_a_fence(lines: list[str]) -> None:
    flat = [piece for line in lines for piece in (line.splitlines() or [""])]
    tags = [element.tag for element in elements(f"before\n\n{fenced(flat)}\n\nafter")]
    assert tags == ["DOCUMENT_FRAGMENT", "p", "pre", "code", "p"]


@given(HOSTILE)
def test_a_title_has_no_reference_and_no_mention(text: str) -> None:
    result = title(text)
    assert len(result) <= TITLE_LIMIT
    assert not re.search(r"[@#`<>|\[\]\\*\n\x00-\x1f]", result)


@given(st.text())
def test_visible_text_is_one_line_without_tricks(text: str) -> None:
    shown = visible(text)
    assert shown == visible(shown)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", shown)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8 of 8 blocks agree.", "8 of 8 blocks agree."),
        ("+2.5 % on select_x", "\\+2.5 % on `select_x`"),
        ("2. not a list", "2\\. not a list"),
        ("ask @octocat, or GH-12", "ask `@octocat`, or `GH-12`"),
        ("", ""),
    ],
)
def test_prose_reads_well(text: str, expected: str) -> None:
    assert prose(text) == expected
