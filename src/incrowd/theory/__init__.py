"""The mathematics: pure functions and value types, with no input, output or randomness.

Nothing here imports the rest of incrowd except its errors, so each file can be read beside its paper.
"""
