"""Releases and what surrounds them: the files, the certificate, its verification, and the ledger of what was spent."""
