"""Builds the documentation as static pages: `python docs/site.py FOLDER` (or `make site`). Needs no network.

Pages are the Markdown files beside this one, in the four parts below. A test fails when a page is in no part.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HERE = Path(__file__).parent
ROOT = HERE.parent
STYLE = ROOT / "src" / "incrowd" / "reports" / "style.css"

PARTS: dict[str, tuple[str, ...]] = {
    "Tutorials": ("tutorial-census", "tutorial-hospital", "tutorial-survey"),
    "How to": (
        *("choosing", "planning", "hierarchies", "sources", "spark", "audit", "signing", "studio"),
        *("from-arx", "from-sdcmicro", "from-opendp"),
    ),
    "Reference": ("commands", "policy", "certificate", "python", "measures", "errors"),
    "Explanation": (
        *("idea", "guarantees", "reading-a-certificate", "adversaries", "pram", "local", "sampling"),
        *("proofs", "errata", "limits"),
    ),
}

_BRACKETS = r"\{[^{}]*\}|\((?:[^()]|\([^()]*\))*\)"
_HIGH = re.compile(rf"\^(?P<inside>{_BRACKETS}|[−-]?\w+)")
_LOW = re.compile(r"(?<=\b[^\W\d_])_(?P<inside>\{[^{}]*\}|[^\W²³]{1,3}(?![^\W²³]))")

_EXTRA = """
.site{display:grid;grid-template-columns:minmax(11rem,15rem) minmax(0,1fr);gap:2.5rem;max-width:76rem;margin:0 auto;
padding:0 1.5rem}
.site>nav{padding-top:2.5rem;font-size:.93rem;position:sticky;top:0;align-self:start;max-height:100vh;overflow-y:auto}
.site>nav h2{font:600 .78rem var(--text);letter-spacing:.08em;text-transform:uppercase;color:var(--soft);
margin:1.4rem 0 .4rem}
.site>nav ul{list-style:none;padding:0;margin:0}.site>nav li{line-height:1.35;margin:.3rem 0}
.site>nav a{text-decoration:none}
.site>nav a[aria-current]{font-weight:600;color:var(--ink)}
.site main{padding:1.5rem 0 4rem;margin:0;max-width:none;min-width:0}
.site main h1{margin-top:1rem}.site main h2{margin-top:2.5rem}
.site main table{margin-bottom:1.2rem;display:block;overflow-x:auto}
.site sup,.site sub{line-height:0;font-size:.78em}
.site pre.formula{text-align:left}
.site main td code{white-space:nowrap}
.site main pre{max-width:none;overflow-x:auto}.site main img{max-width:100%;height:auto}
.site main pre[data-file]::before{content:attr(data-file);display:block;color:var(--soft);font:.8rem var(--text);
border-bottom:1px solid var(--line);padding-bottom:.4rem;margin-bottom:.7rem}
.site .pages{display:none}
@media (max-width:52rem){.site{grid-template-columns:1fr;gap:0}
.site>nav{position:static;max-height:none;padding:0 0 3rem;order:2}.site .pages{display:block}}
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
    page = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f'<meta name="color-scheme" content="light dark"/>'
        f'<title>{html.escape(title_of(text))} · incrowd</title><link rel="stylesheet" href="style.css"/></head>'
        f'<body><div class="site">{_navigation(name)}<main><a class="pages" href="#pages">All pages</a>'
        f"{_body(text)}</main></div></body></html>\n"
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
    return f'<nav id="pages" aria-label="Pages">{"".join(parts)}</nav>'


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
            token.attrSet("id", slug(tokens[at + 1].content))
        for child in token.children or []:
            if child.type == "link_open":
                child.attrSet("href", _target(str(child.attrGet("href"))))
            if child.type == "text" and formulas(child.content) != html.escape(child.content):
                child.type, child.content = "html_inline", formulas(child.content)
            if child.type == "image":
                child.attrSet("src", str(child.attrGet("src")).removeprefix("docs/"))
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def formulas(text: str) -> str:
    """Text as HTML, with what is written e^ε and p_in as high and low letters."""

    def part(found: re.Match[str], tag: str) -> str:
        inside = found["inside"]
        return f"<{tag}>{inside[1:-1] if inside[0] in '{(' else inside}</{tag}>"

    text = _HIGH.sub(lambda found: part(found, "sup"), html.escape(text))
    return _LOW.sub(lambda found: part(found, "sub"), text)


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
