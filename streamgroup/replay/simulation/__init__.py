"""The simulation: sources choose workers, workers serve, and what flows back."""
