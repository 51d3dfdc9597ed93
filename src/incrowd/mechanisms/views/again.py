"""Another synthetic table from published views: it costs nothing, because nothing else is looked at."""

from __future__ import annotations

import numpy as np

from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.views.draw import combined, fitted
from incrowd.mechanisms.views.state import read_views
from incrowd.mechanisms.views.stated import ViewsCertificate


def drawn_again(certificate: ViewsCertificate, published: Publication, rows: int | None, seed: int | None) -> Histogram:
    """So many rows, or about as many as people; the same for the same seed."""
    views = read_views(certificate.mechanism, certificate.labels, published.beside)
    model = fitted([len(labels) for labels in certificate.labels.values()], views)
    none = np.zeros(0, np.uint8)
    columns = [Column(name, labels, none) for name, labels in certificate.labels.items()]
    return combined(model, columns, rows, np.random.default_rng(seed))
