"""The groupings a second time, each as the paper or the rule reads."""
