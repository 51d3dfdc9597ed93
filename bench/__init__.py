"""Benchmarks: ratios measured in one run, never tests."""

MODULES = (
    "startup",
    "main_job",
    "counting",
    "spark_release",
    "databases",
    "rivals",
    "lattice_search",
    "adult_release",
    "plain_sample",
    "sampling_rate",
    "planner",
    "thinning",
    "pram",
    "collector",
    "cell_memory",
    "curves",
)
"""What `make bench` runs, in this order; `hundred_million`, which takes long, is run by itself."""
