"""The stages beside the workers: servers in the sources, a combiner."""
