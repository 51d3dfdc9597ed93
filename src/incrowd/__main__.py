"""`python -m incrowd` is the same as `incrowd`."""

from incrowd.cli import main

if __name__ == "__main__":
    main()
