"""What runs the steps of an ingest: Spark, or threads of this process."""
