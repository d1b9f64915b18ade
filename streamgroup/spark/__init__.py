"""Starting Spark and running work on it: the one place that starts a JVM. DataFrame API only."""
