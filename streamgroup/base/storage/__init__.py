"""Files and places: local paths and URLs, written whole or not at all."""
