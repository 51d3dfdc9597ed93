"""Many small tables of a few columns each, and one synthetic table made of them."""
