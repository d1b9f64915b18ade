"""What several of the naive groupings are made of: hashes, draws, rings, tables of counts, windows."""
