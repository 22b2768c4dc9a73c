"""The files of a run, their rows, and the numbers that follow from them."""
