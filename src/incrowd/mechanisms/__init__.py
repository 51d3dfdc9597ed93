"""Mechanisms: from a histogram to a histogram. None of them sees rows, files or engines.

Adding one is a folder, and its name here.
"""

NAMES = ("sampled_crowd", "generalization", "sample", "pram", "views")
