"""Example data to try things on: made up, deterministic, and free to share."""
