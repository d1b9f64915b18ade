"""The job on Flink's local cluster, in a Python of its own: it shares a directory with the run that asked for it."""
