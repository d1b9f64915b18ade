"""A grouping's decisions outside a replay: one source, whose keys are not known beforehand."""
