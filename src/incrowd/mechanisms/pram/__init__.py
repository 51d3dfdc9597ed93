"""Redraw every value at random (Ikarashi, Kikuchi, Chida, Takahashi)."""
