"""What tests in several places need."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

# Tests are no package; what several of them use is found by this name.
_spec = importlib.util.spec_from_file_location("databases", Path(__file__).with_name("databases.py"))
databases = sys.modules["databases"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(databases)


@pytest.fixture(scope="session")
def postgresql_server():
    """The address of a PostgreSQL server of the tests' own."""
    pytest.importorskip("adbc_driver_postgresql", reason="adbc-driver-postgresql is not installed")
    with databases.postgresql_server() as address:
        yield address


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder with the benchmark tables and their hierarchies, which are not part of the source tree."""
    named = os.environ.get("INCROWD_BENCHMARK_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not (folder / "adult" / "adult.csv").is_file():
        pytest.skip("the benchmark tables are not here; set INCROWD_BENCHMARK_DATA to their folder")
    return folder
