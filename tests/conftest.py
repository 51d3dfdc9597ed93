"""What tests in several places need."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder with the benchmark tables and their hierarchies, which are not part of the source tree."""
    named = os.environ.get("INCROWD_BENCHMARK_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not (folder / "adult" / "adult.csv").is_file():
        pytest.skip("the benchmark tables are not here; set INCROWD_BENCHMARK_DATA to their folder")
    return folder
