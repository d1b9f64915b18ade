"""The stages beside the workers: servers and a combiner in the sources, aggregators and applications behind."""
