"""Attacks on unsafe releases, and empirical audits of safe ones."""
