"""The page of the claims of the papers and its figures."""
