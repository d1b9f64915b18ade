"""Keys as engines see them: typed values and their bytes."""
