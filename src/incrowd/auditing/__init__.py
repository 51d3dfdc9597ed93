"""What a table gives away, whoever published it: pure functions on a histogram of the values that occur."""
