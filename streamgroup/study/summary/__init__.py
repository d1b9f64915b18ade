"""Runs read from their directories into one table: chosen, compared, averaged."""
