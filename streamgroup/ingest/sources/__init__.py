"""What an ingest reads: files through a reader, or whatever Spark loads."""
