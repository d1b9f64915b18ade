"""The readers, one file each: what a raw format's lines, fields, times and keys are."""
