"""Runs as files: one replay into a directory, many directories read, grouped, compared and held to conditions."""
