"""The groupings: one file each, named as on the command line; none knows a loop, a clock, a file or a metric."""
