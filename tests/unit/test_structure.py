"""The shape of the code: imports go downwards only, public names are the documented ones, help is light."""

import ast
import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import incrowd
from incrowd.core.errors import CODES, IncrowdError

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "incrowd"

# Five layers. A room may use the rooms to its left in its own layer and all layers above it in this list.
LAYERS = {
    "ground": ["_version", "core", "theory"],
    "matter": [
        "domain",
        "policy",
        "randomness",
        "noise",
        "histogram",
        "marginals",
        "hierarchy",
        "sources",
        "recoding",
        "reports",
    ],
    "mechanisms": ["mechanisms"],
    "work": ["releases", "auditing", "comparison", "survey", "drafting", "papers"],
    "api": ["api"],
    "faces": ["studio", "cli"],
}
ROOMS = [room for rooms in LAYERS.values() for room in rooms]
PURE = {"theory": {"core", "theory"}}
REGISTRY = ("policy/release.py", "incrowd.mechanisms.registry")
"""The one import that goes up: a policy's section is the one that its mechanism has in the registry."""


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "incrowd")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "incrowd":
            if node.module == "incrowd":
                yield from (f"incrowd.{alias.name}" for alias in node.names)
            else:
                yield node.module


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_downwards_only(path):
    here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if here in ("__init__", "__main__"):
        return
    assert here in ROOMS, f"{here} has no place in the order of rooms"
    for module in imports(path):
        there = room_of(module)
        if there == "__init__":
            continue
        assert there in ROOMS, f"{path} imports {module}, which has no place in the order of rooms"
        if (path.relative_to(PACKAGE).as_posix(), module) == REGISTRY:
            continue
        assert ROOMS.index(there) <= ROOMS.index(here), f"{path} imports {module}, which is above it"
        if here in PURE:
            assert there in PURE[here], f"{path} imports {module}: the mathematics imports nothing of the rest"


def test_faces_call_the_api_and_nothing_below():
    for path in sorted(p for face in ("cli", "studio") for p in (PACKAGE / face).rglob("*.py")):
        used = {room_of(m) for m in imports(path)} - {path.relative_to(PACKAGE).parts[0]}
        verb = {"studio"} if path == PACKAGE / "cli" / "studio.py" else set()  # it starts the other face
        assert used <= {"api", "core", "_version"} | verb, f"{path} reaches below the api: {used}"


def forwarded(code: str):
    """Functions that do nothing but hand their parameters, as they are, to another function."""
    for function in ast.walk(ast.parse(code)):
        if not isinstance(function, ast.FunctionDef):
            continue
        body = [node for node in function.body if not isinstance(node, ast.ImportFrom)]
        *docstring, last = body
        if len(docstring) > 1 or not isinstance(last, ast.Return) or not isinstance(last.value, ast.Call):
            continue
        call, given = last.value, [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
        handed = [ast.unparse(argument) for argument in (*call.args, *(keyword.value for keyword in call.keywords))]
        if isinstance(call.func, ast.Name) and given == handed:
            yield function.name


def test_the_api_forwards_nothing():
    found = [name for path in (PACKAGE / "api").glob("*.py") for name in forwarded(path.read_text(encoding="utf-8"))]
    assert found == [], "give it as a lazy name (`_HOMES`)"
    assert list(forwarded('def f(a, *, b):\n    "Says so."\n    from m import g\n\n    return g(a, b=b)')) == ["f"]


def test_no_type_is_asserted_by_a_cast():
    assert not [path.name for path in MODULES if re.search(r"typing import .*\bcast\b", path.read_text("utf-8"))]


def test_public_names_are_exactly_the_documented_ones():
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^### `(\w+)", page, flags=re.MULTILINE))
    assert documented == set(incrowd.__all__)
    for name in incrowd.__all__:
        assert getattr(incrowd, name) is not None
    assert dir(incrowd) == sorted(incrowd.__all__)


def public_modules() -> dict[str, list[str]]:
    """The modules beside `incrowd` that docs/python.md lists, with the names that it lists of each."""
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").partition("## Other modules")[2]
    rows = re.findall(r"^\| `(incrowd[\w.]+)` \| ([^|]+) \|", page, flags=re.MULTILINE)
    return {module: re.findall(r"`(\w+)`", names) for module, names in rows}


def used_names(code: str):
    """The names of incrowd that a program imports, or takes as attributes of `incrowd`: pairs (module, name)."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "incrowd":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("incrowd."))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "incrowd":
            yield "incrowd", node.attr


def test_pages_use_public_names_only():
    public = {"incrowd": incrowd.__all__, **public_modules()}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    used = {
        (page.name, *name)
        for page in pages
        for code in re.findall(r"^```python[^\n]*\n(.*?)^```", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for name in used_names(code)
    }
    assert len(used) > 50
    assert not [(page, module, name) for page, module, name in sorted(used) if name not in public.get(module, ())]


def test_a_name_that_is_not_public_is_noticed():
    code = "import incrowd\nimport incrowd.core\nfrom incrowd.api import release\nincrowd.verify('x')\n"
    assert sorted(used_names(code)) == [("incrowd", "verify"), ("incrowd.api", "release"), ("incrowd.core", "")]


def test_the_names_of_public_modules_are_there():
    assert len(public_modules()) > 5
    for module, names in public_modules().items():
        assert names
        assert not [name for name in names if not hasattr(importlib.import_module(module), name)], module


def test_no_two_classes_have_the_same_name():
    text = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)
    names = re.findall(r"^class (\w+)", text, flags=re.MULTILINE)
    assert {name for name in names if names.count(name) > 1} == set()


def test_modules_are_named_by_what_they_hold():
    terms = {"mapping", "sampling", "shuffling", "signing"}  # the field's own words
    assert {path.stem for path in MODULES if path.stem.endswith("ing")} <= terms


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError):
        _ = incrowd.no_such_name


@pytest.mark.parametrize("page", ["errors.md", "commands.md"])
def test_reference_pages_say_what_the_code_says(page):
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert written == runpy.run_path(str(ROOT / "docs" / "reference.py"))["PAGES"][page](), "run `make reference`"


def test_every_code_raised_is_registered_and_every_registered_code_is_raised():
    source = "\n".join(p.read_text(encoding="utf-8") for p in MODULES if p.name != "errors.py")
    raised = set(re.findall(r'code="([\w-]+)"', source)) | {"internal"}
    assert raised <= set(CODES)
    unused = {code for code in CODES if code not in raised and f'"{code}"' not in source}
    assert not unused, f"registered but never raised: {unused}"


def test_an_unregistered_code_is_refused():
    with pytest.raises(ValueError, match="unregistered"):
        IncrowdError("x", code="no-such-code")


def test_the_error_tree_is_the_drawn_one():
    import incrowd.core.errors as module

    drawn = set(re.findall(r"(\w+Error)\b", module.__doc__))
    defined = {name for name, value in vars(module).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert drawn == defined


HEAVY = ("scipy", "duckdb", "numpy", "pyarrow", "pandas", "flint", "opendp", "rich", "pydantic", "yaml")


def test_reading_a_policy_imports_nothing_heavy():
    program = (
        "import sys; from incrowd.policy import Policy;"
        "Policy.from_text('{incrowd: 1, attributes: {a: {domain: [x, y]}}, release: {mechanism: pram, rho: 0.5}}');"
        "print([m for m in ('numpy', 'scipy', 'pyarrow', 'duckdb', 'opendp', 'flint') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"], ["plan", "crowd", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    program = (
        "import sys; from incrowd.cli import incrowd; incrowd.main(sys.argv[1:], standalone_mode=False);"
        f"print(*[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
    assert done.stdout.strip()


def test_importing_incrowd_imports_nothing_heavy():
    program = f"import sys, incrowd; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_modules_stay_readable():
    long = {str(p.relative_to(PACKAGE)): n for p in MODULES if (n := len(p.read_text().splitlines())) > 600}
    assert not long, f"modules over 600 lines: {long}"


# --- numbers ----------------------------------------------------------------------------------------------------------

FORMATTED = re.compile(r":,?(\.\d+)?[gf%e]\}")
# Coordinates of drawings; figures that papers print, digit by digit; what certificates say, byte by byte; and decimals
# that are made to be read again.
NOT_FOR_PEOPLE = (
    "core/numbers.py",
    "reports/",
    "papers/",
    "mechanisms/views/charts.py",
    "mechanisms/generalization/adversaries.py",
    *(f"mechanisms/{name}/state.py" for name in ("pram", "sampled_crowd", "sampled_crowd/tree", "views")),
)
READ_AGAIN = ('float(f"', ".normalize():,f", 'fill-opacity="', ":>9}")


def formatted(folder):
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        for line in path.read_text(encoding="utf-8").splitlines():
            spec = FORMATTED.search(line)
            if spec and not name.startswith(NOT_FOR_PEOPLE) and not any(mark in line for mark in READ_AGAIN):
                yield f"{name}: {line.strip()}"


def test_numbers_for_people_are_printed_by_one_module(tmp_path):
    assert list(formatted(Path(incrowd.__file__).parent)) == []
    (tmp_path / "one.py").write_text('text = f"{delta:.3g} and {share:.1%}"\n', encoding="utf-8")
    assert len(list(formatted(tmp_path))) == 1
