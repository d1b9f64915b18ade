"""Hot-key detectors, which groupings name by a parameter."""
