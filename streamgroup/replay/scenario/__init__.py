"""What is simulated: options and files, checked and turned into a plan."""
