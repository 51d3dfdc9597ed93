"""Results show themselves: whatever they say is escaped, and numbers are rounded to the safe side."""

from dataclasses import dataclass
from html.parser import HTMLParser

import pytest

from incrowd.core.display import Showable, Shown, ShownTable, picture

HOSTILE = '<script>alert("1")</script>&amp;'
HIDING = "\x1b[2J\u202e\x00"


class Tags(HTMLParser):
    """Every element and every attribute of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.attributes = [], [], set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def everywhere(text):
    table = ShownTable((text, text), [(text, text)])
    return Shown(text, (text,), (table,), (text,), internal=text, listing=text)


def test_no_part_of_a_result_can_write_html():
    page = everywhere(HOSTILE).html()
    tags = Tags(page)
    assert not tags.open
    assert "script" not in tags.tags
    assert tags.attributes == {"style"}
    assert page.count("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;amp;") == 9


def test_no_part_of_a_result_can_steer_a_terminal():
    shown = everywhere(HIDING).text()
    assert not any(c in shown for c in HIDING if c not in "[2J")
    assert shown.count("\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}") == 8


def test_words_stand_at_the_left_and_numbers_at_the_right():
    table = ShownTable(("name", "people"), [("a", "1,000"), ("bcdefg", "2")])
    assert table.text() == "name    people\na        1,000\nbcdefg       2"
    assert table.html().count("text-align: left") == table.html().count("text-align: right") == 3


def test_what_is_empty_is_left_out():
    shown = Shown("A title", tables=(ShownTable(("a", "b"), []), ShownTable(("", ""), [("c", "d")])))
    assert shown.text() == "A title\nc  d"
    assert "<th" not in shown.html()
    assert shown.html().count("<table>") == 1
    assert "<ul>" not in shown.html()
    assert "<details>" not in shown.html()


def test_what_is_for_the_publisher_alone_comes_first():
    shown = Shown("title", internal="for you only")
    assert shown.text().startswith("for you only\n")
    assert shown.html().index("for you only") < shown.html().index("title")


@dataclass(frozen=True, repr=False)
class SomePlan(Showable):
    epsilon: float
    from_delta: float
    beta: float
    rho: float
    people: int
    sampled: bool
    inside: "SomePlan | None" = None
    nothing: tuple = ()


def shown(**given):
    plan = SomePlan(
        **{"epsilon": 1.0, "from_delta": 1e-6, "beta": 0.1, "rho": 0.1, "people": 5, "sampled": True} | given
    )
    return {name: text for name, _, text in (line.partition("  ") for line in repr(plan).splitlines()[1:])}


def test_a_plan_shows_its_numbers_by_their_names():
    lines = shown(people=12345)
    assert list(lines) == ["epsilon", "from delta", "beta", "rho", "people", "sampled"]
    assert lines["people"].strip() == "12,345"
    assert lines["sampled"].strip() == "yes"
    assert shown(inside=SomePlan(2.0, 1e-5, 0.2, 0.3, 7, sampled=False))["inside"].strip() == (
        "epsilon = 2, from_delta = 10⁻⁵, beta = 0.2, rho = 0.3, people = 7, sampled = no"
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("epsilon", 0.1, "0.1"),  # as it was given, though the float is a little above
        ("epsilon", 0.1234560001, "0.123457"),
        ("from_delta", 1.000000001e-6, "1.00001 · 10⁻⁶"),
        ("beta", 0.1999999999, "0.199999"),
        ("rho", 0.123456789, "0.123456789"),
    ],
)
def test_what_is_promised_is_rounded_to_the_safe_side(name, value, expected):
    assert shown(**{name: value})[name.replace("_", " ")].strip() == expected


def test_a_picture_is_shown_and_saved(tmp_path):
    drawn = picture("<svg>é</svg>", tmp_path / "drawn.svg")
    assert drawn._repr_svg_() == (tmp_path / "drawn.svg").read_text(encoding="utf-8") == "<svg>é</svg>"
    assert "svg>" not in repr(drawn)
