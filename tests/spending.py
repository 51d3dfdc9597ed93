"""What several entries of a ledger cost together, as one plan: what tests hold the rules against."""

from incrowd.releases.costs import parts_of, planned_parts


def spent(entries, relation, delta):
    """The least ε known with which they are (ε,δ)-DP; promises that do not compose are left out."""
    return planned_parts(parts_of(entries, relation), delta)
