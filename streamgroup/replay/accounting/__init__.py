"""What is measured of a simulation: per worker, per window, over the run."""
