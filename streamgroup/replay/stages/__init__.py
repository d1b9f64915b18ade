"""The stages beside the workers: the combiner in the sources, aggregators and applications, state that costs."""
