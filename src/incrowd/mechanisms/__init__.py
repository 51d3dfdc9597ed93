"""Mechanisms: from a histogram to a histogram. None of them sees rows, files or engines."""
