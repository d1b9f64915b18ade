"""What every room may use: errors with hints, units, discovery by file name, directories that appear whole."""
