"""The mapping g: which level of its hierarchy each column is shown at, and how it is chosen."""
