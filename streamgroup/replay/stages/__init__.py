"""What lies beside the workers: servers that a tuple passes before or after them."""
