"""Input files: archives, compression, splits."""
