"""Builds the documentation as static pages: `python docs/site.py FOLDER` (or `make site`). Needs no network.

Pages are the Markdown files beside this one, in the four parts below. A test fails when a page is in no part.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HERE = Path(__file__).parent
ROOT = HERE.parent
LONG = 44  # letters of code that may be broken in a table
MANY = 5  # parts of a page, from which on they are listed at its top
STYLE = ROOT / "src" / "incrowd" / "reports" / "style.css"

PARTS: dict[str, tuple[str, ...]] = {
    "Tutorials": ("tutorial-census", "tutorial-hospital", "tutorial-survey"),
    "How to": (
        *(
            "choosing",
            "planning",
            "views",
            "hierarchies",
            "sources",
            "spark",
            "audit",
            "scripts",
            "checks",
            "signing",
            "studio",
        ),
        *("from-csv", "from-arx", "from-sdcmicro", "from-opendp"),
    ),
    "Reference": ("commands", "policy", "ledger", "certificate", "python", "estimates", "measures", "errors"),
    "Explanation": (
        *("idea", "guarantees", "reading-a-certificate", "adversaries", "pram", "local", "sampling"),
        *("cost", "proofs", "errata", "limits", "architecture"),
    ),
}

_BRACKETS = r"\{[^{}]*\}|\((?:[^()]|\([^()]*\))*\)"
_HIGH = re.compile(rf"\^(?P<inside>{_BRACKETS}|[−-]?\w+)")
# One letter before it, which may have a prime or a hat and stand behind a sum or a number, or the word max or min.
_LETTER, _AFTER, _ABOVE = r"[^\W\d_]", r"[^\W\dΣΠ²³]", r"['\u0302]"
_LOW = re.compile(
    rf"(?:(?<={_LETTER})(?<!{_AFTER}{_LETTER})|(?<={_LETTER}{_ABOVE})(?<!{_AFTER}{_LETTER}{_ABOVE})|(?<=\bmax)|(?<=\bmin))"
    r"_(?P<inside>\{[^{}]*\}|[^\W_²³]{1,3}(?![^\W²³]))"
)

_EXTRA = """
.site{display:grid;grid-template-columns:13.5rem minmax(0,1fr);gap:2.2rem;max-width:80rem;margin:0 auto;
padding:0 1.5rem}
.site>nav{padding:1.3rem 0;font-size:.86rem;position:sticky;top:0;align-self:start;max-height:100vh;overflow-y:auto}
.site>nav h2{font:600 .72rem var(--text);letter-spacing:.08em;text-transform:uppercase;color:var(--soft);
margin:.85rem 0 .2rem}
.site>nav ul{list-style:none;padding:0;margin:0}.site>nav li{line-height:1.25;margin:.22rem 0}
.site>nav a,.site .turn a{text-decoration:none}
.site>nav a[aria-current]{font-weight:600;color:var(--ink)}
.site main{padding:1.2rem 0 4rem;margin:0;max-width:none;min-width:0}
.site main h1{margin-top:.8rem}.site main h2{margin-top:2.5rem;scroll-margin-top:1rem}
.site main h3{scroll-margin-top:1rem}
.site .here{margin-left:.4em;text-decoration:none;color:var(--soft);font-weight:400;opacity:0}
.site :is(h2,h3):hover .here,.site .here:focus{opacity:1}
.site .inside{margin:0 0 1.5rem;padding:.7rem 1rem;border-left:3px solid var(--line);max-width:46rem;font-size:.92rem}
.site .inside ol{gap:.15rem 1.2rem;font-size:inherit}.site .inside code{background:none;padding:0}
.site .turn{display:flex;justify-content:space-between;gap:1.5rem;max-width:46rem;margin-top:3.5rem;padding-top:1rem;
border-top:1px solid var(--line);font-size:.92rem}
.site .turn a:last-child{text-align:right;margin-left:auto}
.site main table{margin-bottom:1.2rem;display:block;overflow-x:auto}
.site main :is(h2,h3) code{background:none;padding:0}.site main h2.code{font-size:1.35rem;
margin:1.9rem 0 .5rem}
.site sup,.site sub{line-height:0;font-size:.78em}
.site pre.formula{text-align:left}.site main>ol{max-width:46rem}
.site main :is(td,th) code:not(.long){white-space:nowrap}
.site main pre{max-width:none;overflow-x:auto}.site main pre:not(.formula){font-size:.92rem}
.site main img{max-width:100%;height:auto}
.site main img[src$=".png"]{border:1px solid var(--line);border-radius:8px}
.site main pre[data-file]::before{content:attr(data-file);display:block;color:var(--soft);font:.8rem var(--text);
border-bottom:1px solid var(--line);padding-bottom:.4rem;margin-bottom:.7rem}
.site .pages{display:none}
@media (max-width:52rem){.site{grid-template-columns:1fr;gap:0}
.site>nav{position:static;max-height:none;padding:0 0 3rem;order:2;font-size:1rem}.site>nav li{margin:.5rem 0}
.site .pages{display:block}}
@media print{.site{display:block;padding:0}.site .pages,.site .turn,.site .here{display:none}
.site main pre{white-space:pre-wrap;overflow-wrap:anywhere}
.site main table{display:table}}
"""


def build(folder: Path) -> list[Path]:
    """Write every page; the README becomes the first one."""
    folder.mkdir(parents=True, exist_ok=True)
    light = HtmlFormatter(style="default").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    dark = "\n".join(line for line in dark.splitlines() if "background" not in line.split("{")[-1][:12])
    style = STYLE.read_text(encoding="utf-8") + _EXTRA + light + f"\n@media (prefers-color-scheme:dark){{{dark}}}"
    style += "\npre{background:var(--tint)!important}"
    (folder / "style.css").write_text(style, encoding="utf-8")
    written = [_write(folder, "index", ROOT / "README.md")]
    written += [_write(folder, name, HERE / f"{name}.md") for names in PARTS.values() for name in names]
    for picture in sorted((HERE / "pictures").glob("*")) if (HERE / "pictures").is_dir() else ():
        place = folder / "pictures"
        place.mkdir(exist_ok=True)
        (place / picture.name).write_bytes(picture.read_bytes())
    return written


def title_of(text: str) -> str:
    """A page's first heading."""
    found = re.search(r"^# (.+)$", text, flags=re.MULTILINE)
    return found.group(1).replace("`", "") if found else "incrowd"


def _write(folder: Path, name: str, source: Path) -> Path:
    text = source.read_text(encoding="utf-8")
    title = title_of(text) if name == "index" else f"{title_of(text)} · incrowd"
    page = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f'<meta name="color-scheme" content="light dark"/>'
        f'<title>{html.escape(title)}</title><link rel="stylesheet" href="style.css"/></head>'
        f'<body><div class="site">{_navigation(name)}<main><a class="pages" href="#all-pages">All pages</a>'
        f"{_body(text)}{_turning(name)}</main></div></body></html>\n"
    )
    place = folder / f"{name}.html"
    place.write_text(page, encoding="utf-8")
    return place


def _navigation(current: str) -> str:
    def item(name: str, title: str) -> str:
        here = ' aria-current="page"' if name == current else ""
        return f'<li><a href="{name}.html"{here}>{html.escape(title)}</a></li>'

    parts = [f"<ul>{item('index', 'incrowd')}</ul>"]
    for part, names in PARTS.items():
        items = "".join(item(name, _short_title(name)) for name in names)
        parts.append(f"<h2>{part}</h2><ul>{items}</ul>")
    return f'<nav id="all-pages" aria-label="Pages">{"".join(parts)}</nav>'


def _turning(current: str) -> str:
    """The page before and the page after."""
    names = ["index", *(name for names in PARTS.values() for name in names)]
    at = names.index(current)
    before = "" if at == 0 else f'<a href="{names[at - 1]}.html" rel="prev">← {_named(names[at - 1])}</a>'
    after = "" if at + 1 == len(names) else f'<a href="{names[at + 1]}.html" rel="next">{_named(names[at + 1])} →</a>'
    return f'<nav class="turn" aria-label="Next to this page">{before}{after}</nav>'


def _named(name: str) -> str:
    return "incrowd" if name == "index" else html.escape(_short_title(name))


def _short_title(name: str) -> str:
    """What comes before the colon."""
    return title_of((HERE / f"{name}.md").read_text(encoding="utf-8")).partition(":")[0]


def _body(text: str) -> str:
    markdown = MarkdownIt("commonmark", {"html": True, "highlight": _highlighted}).enable(["table", "strikethrough"])
    tokens = markdown.parse(text)
    for at, token in enumerate(tokens):
        if token.type == "code_block":  # indented: a formula that stands by itself
            token.type, token.content = "html_block", f'<pre class="formula">{formulas(token.content)}</pre>\n'
        if token.type == "heading_open":
            anchor = slug(tokens[at + 1].content)
            token.attrSet("id", anchor)
            if tokens[at + 1].content.startswith("`"):
                token.attrSet("class", "code")
            if token.tag != "h1":
                link = f'<a class="here" href="#{anchor}" aria-label="Link to this part">#</a>'
                (tokens[at + 1].children or []).append(Token("html_inline", "", 0, content=link))
        for child in token.children or []:
            if child.type == "link_open":
                child.attrSet("href", _target(str(child.attrGet("href"))))
            if child.type == "text" and formulas(child.content) != html.escape(child.content, quote=False):
                child.type, child.content = "html_inline", formulas(child.content)
            if child.type == "code_inline" and "::" in child.content:  # a test: broken between words, if at all
                broken = re.sub(r"(::|[/_])", r"\1<wbr/>", html.escape(child.content))
                child.type, child.content = "html_inline", f"<code>{broken}</code>"
            if child.type == "code_inline" and len(child.content) > LONG:
                child.attrSet("class", "long")
            if child.type == "image":
                child.attrSet("src", str(child.attrGet("src")).removeprefix("docs/"))
    parts = [at for at, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"]
    if len(parts) >= MANY:
        tokens.insert(parts[0], Token("html_block", "", 0, content=_contents([tokens[at + 1].content for at in parts])))
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _contents(headings: list[str]) -> str:
    items = "".join(f'<li><a href="#{slug(h)}">{html.escape(h.replace("`", ""))}</a></li>' for h in headings)
    return f'<nav class="inside" aria-label="On this page"><ol>{items}</ol></nav>\n'


def formulas(text: str) -> str:
    """Text as HTML, with what is written e^ε and p_in as high and low letters."""

    def part(found: re.Match[str], tag: str) -> str:
        inside = found["inside"]
        return f"<{tag}>{_LOW.sub(low, inside[1:-1] if inside[0] in '{(' else inside)}</{tag}>"

    def low(found: re.Match[str]) -> str:
        return part(found, "sub")

    return _LOW.sub(low, _HIGH.sub(lambda found: part(found, "sup"), html.escape(text, quote=False)))


def slug(heading: str) -> str:
    """A heading as an anchor, as the pages' links write it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _target(link: str) -> str:
    """A link between Markdown files as one between pages."""
    if "://" in link or link.startswith("#"):
        return link
    file, hash_, anchor = link.partition("#")
    name = Path(file).name
    page = "index.html" if name == "README.md" else re.sub(r"\.md$", ".html", name)
    return f"{page}{hash_}{anchor}"


def _highlighted(code: str, language: str, rest: str) -> str:
    """A block of code; of a file, with its name above it."""
    try:
        lexer = get_lexer_by_name({"": "text", "csv": "text"}.get(language, language))
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    file = f' data-file="{html.escape(rest.strip())}"' if "." in rest else ""
    return f"<pre{file}><code>{highlight(code, lexer, HtmlFormatter(nowrap=True))}</code></pre>"


if __name__ == "__main__":
    for path in build(Path(sys.argv[1] if len(sys.argv) > 1 else "site")):
        print(path)
