"""Builds the documentation as static pages: `python docs/site.py FOLDER` (or `make site`). Needs no network.

Pages are the Markdown files beside this one, in the four parts below. A test fails when a page is in no part. The first
one says what it is for, in parts of the README. With `--gallery` the papers' figures are drawn, too.
"""

from __future__ import annotations

import html
import json
import re
import sys
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from incrowd import __version__, api

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

FIGURES = tuple(name for name in api.gallery_figures() if name.startswith("sampling-"))
"""Those of the gallery that need no table and are drawn in seconds."""

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
.site main table{margin-bottom:1.2rem;display:block;overflow-x:auto;scrollbar-width:thin;background:
linear-gradient(to right,var(--page) 40%,transparent) 0 0/2.6rem 100% no-repeat local,
linear-gradient(to left,var(--page) 40%,transparent) 100% 0/2.6rem 100% no-repeat local,
linear-gradient(to right,var(--shade),transparent) 1px 0/1.3rem 100% no-repeat scroll,
linear-gradient(to left,var(--shade),transparent) calc(100% - 1px) 0/1.3rem 100% no-repeat scroll}
.site main p:has(>img){overflow-x:auto}
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
.site :is(.pages,#unfold){display:none}
.site>nav .version{color:var(--soft);font-weight:400}
#searching{margin:.6rem 0 .2rem}#search{width:100%;font:inherit;color:inherit;padding:.35rem .6rem;
background:var(--card);border:1px solid var(--soft);border-radius:7px}
#searching[hidden],#found[hidden]{display:none}#search:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
#found{list-style:none;margin:.4rem 0 0;padding:.5rem .7rem;background:var(--card);border:1px solid var(--line);
border-radius:8px}
.site .doors{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));
gap:.9rem;margin:1.6rem 0;max-width:none;padding:0;list-style:none}
.site .doors li{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.8rem 1rem;margin:0}
.site .doors b{display:block;font-family:var(--serif);font-size:1.1rem}
@media screen and (prefers-color-scheme:dark){.site main img[src$=".png"]{filter:brightness(.88)}}
@media (max-width:52rem){.site main img[src$=".svg"]{min-width:34rem}.site{grid-template-columns:1fr;gap:0}
.site>nav{position:static;max-height:none;padding:.8rem 0 0;font-size:1rem}.site>nav li{margin:.5rem 0}
.site .pages{display:inline-block;color:var(--accent);text-decoration:underline;cursor:pointer;padding:.3rem 0}
.site #unfold{display:block}.site .lists{display:none}.site #unfold:checked~.lists{display:block}
.site #unfold:focus-visible+.pages{outline:2px solid var(--accent);outline-offset:2px}}
@media print{.site{display:block;padding:0}.site .pages,.site .turn,.site .here{display:none}
.site main pre{white-space:pre-wrap;overflow-wrap:anywhere}
.site main table{display:table}}
"""


def build(folder: Path, *, gallery: bool = False) -> list[Path]:
    """Write every page; the first one is made of parts of the README."""
    folder.mkdir(parents=True, exist_ok=True)
    light = HtmlFormatter(style="default").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    dark = "\n".join(line for line in dark.splitlines() if "background" not in line.split("{")[-1][:12])
    style = STYLE.read_text(encoding="utf-8") + _EXTRA + light + f"\n@media (prefers-color-scheme:dark){{{dark}}}"
    style += "\npre{background:var(--card)!important;border:1px solid var(--line)}"
    (folder / "style.css").write_text(style, encoding="utf-8")
    texts = {"index": front((ROOT / "README.md").read_text(encoding="utf-8"), gallery=gallery)}
    texts |= {n: (HERE / f"{n}.md").read_text(encoding="utf-8") for names in PARTS.values() for n in names}
    written = [_write(folder, name, text) for name, text in texts.items()]
    (folder / "search.js").write_bytes((HERE / "search.js").read_bytes())
    parts = [part for name, text in texts.items() for part in searched(name, text)]
    (folder / "search-index.js").write_text(
        f"window.incrowdParts = {json.dumps(parts, ensure_ascii=False)};\n", "utf-8"
    )
    if gallery:
        api.gallery(folder / "gallery", only=FIGURES)
    for picture in sorted((HERE / "pictures").glob("*")) if (HERE / "pictures").is_dir() else ():
        place = folder / "pictures"
        place.mkdir(exist_ok=True)
        (place / picture.name).write_bytes(picture.read_bytes())
    return written


def front(readme: str, *, gallery: bool) -> str:
    """What it is for in one picture and three commands, and where to go on; what is said here stands in the README."""
    said = readme.split("\n\n")[1].replace("\n", " ")
    commands = [line for line in readme.splitlines() if line.startswith("$ incrowd ")][:3]
    rest = [part for part in re.split(r"^(?=## )", readme, flags=re.MULTILINE) if part.startswith(_ON_THE_FRONT)]
    doors = [
        ("Begin", "tutorial-census.html", "A statistics office publishes a sample of its census"),
        ("Your own table", "from-csv.html", "From a file to a policy and a release"),
        ("In the browser", "studio.html", "The studio does all of this without a terminal"),
        ("Performance", "cost.html", "What it costs, measured, and against what"),
        ("Proofs", "proofs.html", "Why each promise holds, and what Coq has checked"),
        *([("Gallery", "gallery/index.html", "The papers’ figures, drawn again and compared")] if gallery else []),
    ]
    items = "".join(f'<li><a href="{link}"><b>{title}</b></a> {text}</li>' for title, link, text in doors)
    seen = "A table is counted, a mechanism draws from the counts, and table, certificate and report are written"
    picture = f"![{seen}](docs/pictures/idea.svg)"
    shown = "\n".join(commands)
    return (
        f"# incrowd\n\n{said}\n\n{picture}\n\n```console\n{shown}\n```\n\n"
        f'<ul class="doors">{items}</ul>\n\n{"".join(rest)}'
    )


_ON_THE_FRONT = ("## A policy", "## Which mechanism", "## What it does not do")


def searched(name: str, text: str) -> list[tuple[str, str, str, str, str]]:
    """Each part of a page as the search knows it: page, anchor, title, heading, and its words, each once."""
    title, found = title_of(text), []
    for part in re.split(
        r"^(?=#{1,3} )", re.sub(r"^```.*?^```$", _kept, text, flags=re.MULTILINE | re.DOTALL), flags=re.MULTILINE
    ):
        head, _, rest = part.partition("\n")
        if not head.startswith("#"):
            continue
        heading = head.lstrip("# ").replace("`", "")
        anchor = "" if head.startswith("# ") else slug(head.lstrip("# "))
        words = re.findall(r"[^\W_](?:[\w.-]*[^\W_])?", re.sub(r"<[^>]*>|\]\([^)]*\)", " ", rest).lower())
        found.append((name, anchor, title, heading, " ".join(dict.fromkeys(words))))
    return found


def _kept(block: re.Match[str]) -> str:
    """A block of code, in which no line is a heading."""
    return re.sub(r"^#", " #", block[0], flags=re.MULTILINE)


def title_of(text: str) -> str:
    """A page's first heading."""
    found = re.search(r"^# (.+)$", text, flags=re.MULTILINE)
    return found.group(1).replace("`", "") if found else "incrowd"


def _write(folder: Path, name: str, text: str) -> Path:
    title = title_of(text) if name == "index" else f"{title_of(text)} · incrowd"
    page = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f'<meta name="color-scheme" content="light dark"/>'
        f'<title>{html.escape(title)}</title><link rel="stylesheet" href="style.css"/>'
        '<script src="search.js" defer="defer"></script></head>'
        f'<body><div class="site">{_navigation(name)}<main>'
        f"{_body(text)}{_turning(name)}</main></div></body></html>\n"
    )
    place = folder / f"{name}.html"
    place.write_text(page, encoding="utf-8")
    return place


def _navigation(current: str) -> str:
    def item(name: str, title: str) -> str:
        here = ' aria-current="page"' if name == current else ""
        return f'<li><a href="{name}.html"{here}>{html.escape(title)}</a></li>'

    version = f' <span class="version">{__version__}</span>'
    first = item("index", "incrowd").replace("</a>", f"</a>{version}")
    lists = "".join(
        f"<h2>{part}</h2><ul>{''.join(item(name, _short_title(name)) for name in names)}</ul>"
        for part, names in PARTS.items()
    )
    search = (
        '<form id="searching" role="search" hidden="hidden"><label class="unseen" for="search">Search</label>'
        '<input type="search" id="search" placeholder="Search" autocomplete="off"/>'
        '<ol id="found" aria-live="polite" hidden="hidden"></ol></form>'
    )
    return (
        f'<nav id="all-pages" aria-label="Pages"><ul>{first}</ul>{search}'
        f'<input type="checkbox" id="unfold" class="unseen" aria-label="All pages"/>'
        '<label class="pages" for="unfold">All pages</label>'
        f'<div class="lists">{lists}</div></nav>'
    )


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
    asked = [argument for argument in sys.argv[1:] if argument != "--gallery"]
    for path in build(Path(asked[0] if asked else "site"), gallery="--gallery" in sys.argv):
        print(path)
