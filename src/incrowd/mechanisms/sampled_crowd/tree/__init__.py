"""Crowds under a private tree: the mapping is a tree of boxes, chosen on the full table (`recoding: tree`)."""
