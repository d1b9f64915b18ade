"""What the real engines do with a key: routing rules over typed values, one engine a file."""
