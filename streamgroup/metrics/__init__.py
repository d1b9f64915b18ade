"""What a run means: every metric by its name and the tables of a run, from the integers that a replay found.

One family of metrics is one file with a function `measure(outcome)`; `run_tables` puts them together. Sums stay
exact integers until the one division at the end, so no figure depends on the order of adding.
"""
