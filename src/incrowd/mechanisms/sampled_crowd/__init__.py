"""Sample, recode, and publish only crowds (Li, Qardaji, Su)."""
