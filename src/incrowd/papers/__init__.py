"""The four papers: their figures, their attacks and data to try them on."""
