"""What tests in several places need."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

# Tests are no package; what several of them use is found by these names.
SHARED = "databases json_schema older_notions power_audit spending studio_pages sufficient_conditions"
for name in SHARED.split():
    _spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    sys.modules[name] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[name])


@pytest.fixture(autouse=True)
def user_state(tmp_path_factory, monkeypatch):
    """What is remembered of ledgers: of each test for itself, and never the user's own."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("INCROWD_STATE", str(folder))
    return folder


@pytest.fixture(autouse=True, scope="session")
def state_of_shared_fixtures(tmp_path_factory):
    """The same for what is made before a test begins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INCROWD_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def postgresql_server():
    """The address of a PostgreSQL server of the tests' own."""
    pytest.importorskip("adbc_driver_postgresql", reason="adbc-driver-postgresql is not installed")
    with sys.modules["databases"].postgresql_server() as address:
        yield address


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder with the benchmark tables and their hierarchies, which are not part of the source tree."""
    named = os.environ.get("INCROWD_BENCHMARK_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not (folder / "adult" / "adult.csv").is_file():
        pytest.skip("the benchmark tables are not here; set INCROWD_BENCHMARK_DATA to their folder")
    return folder


# --- browsers ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if shutil.which("chromium") is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def axe():
    """What axe-core finds on a page as it is shown, all its rules together or contrast alone; the page lets it in."""
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    script = Path(package.__path__[0]).joinpath("axe.min.js").read_text(encoding="utf-8")
    run = """rules => axe.run(document, rules).then((found) => found.violations.map(
      (rule) => [rule.id, rule.impact, rule.nodes.map((node) => node.html.slice(0, 160))]))"""

    def found(page, *, contrast_alone=False):
        if not page.evaluate("'axe' in window"):
            page.evaluate(script)
        return page.evaluate(run, {"runOnly": ["color-contrast"]} if contrast_alone else {})

    return found


# --- tests that share something which takes long to start -------------------------------------------------------------

GROUPS = {
    "spark": ("tests/conformance/spark/", "[spark_"),
    "browser": (
        *(
            "tests/studio/test_journeys",
            "tests/studio/test_safety",
            "tests/studio/test_pages",
            "tests/studio/test_start",
            "tests/studio/test_decisions",
        ),
        *("tests/conformance/mechanisms/test_pages", "tests/unit/test_pages"),
    ),
    "proofs": ("tests/proofs/test_proofs.py::",),
}


def group_of(nodeid):
    """The group of tests that one process must run, by the names of tests; None for those that any process may run."""
    path = nodeid.partition("[")[0]  # a parameter may name another test
    return next(
        (group for group, marks in GROUPS.items() if any(m in (nodeid if m[0] == "[" else path) for m in marks)), None
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`--dist loadgroup` by names: of marks, xdist 3.8 sees nothing under pytest 9.2 (pytest-xdist, issue 1386)."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByName(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid) or nodeid

    return ByName(config, log)


def pytest_collection_modifyitems(items):
    """Names and marks say the same."""
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if group_of(item.nodeid) != (mark.args[0] if mark else None):
            raise pytest.UsageError(f"{item.nodeid}: its xdist_group is not the one in tests/conftest.py")
