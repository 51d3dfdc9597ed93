"""A plain random sample (Chaudhuri, Mishra)."""
