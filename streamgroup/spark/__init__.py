"""Starting Spark and running work on it: the one place that starts Spark's JVM. DataFrame API only."""
