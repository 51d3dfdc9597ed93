"""Benchmarks: ratios measured in one run, never tests."""

MODULES = (
    "startup",
    "main_job",
    "counting",
    "spark_release",
    "spark_pram",
    "databases",
    "people",
    "rivals",
    "lattice_search",
    "adult_release",
    "tree",
    "plain_sample",
    "sampling_rate",
    "planner",
    "thinning",
    "pram",
    "collector",
    "sustained",
    "cell_memory",
    "curves",
)
"""What `make bench` runs, in this order; `cells`, `hundred_million`, `studio_jobs` and `views` take long."""
