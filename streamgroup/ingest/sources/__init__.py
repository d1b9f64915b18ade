"""Sources of an ingest: files through a reader, or tables that Spark loads."""
