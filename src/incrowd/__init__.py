"""incrowd publishes tables about people, and proves what it promises."""

from incrowd._version import __version__

__all__ = ["__version__"]
