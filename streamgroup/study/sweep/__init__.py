"""Many runs in one directory."""
