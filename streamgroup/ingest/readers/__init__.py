"""The readers, one file for each raw format, named as on the command line."""
