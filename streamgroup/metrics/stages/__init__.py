"""The stages that a tuple passes besides the workers: how busy sources and aggregators are, and what limits a run."""
