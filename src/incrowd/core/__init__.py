"""The ground: errors, files, numbers, signatures."""
