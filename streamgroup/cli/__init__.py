"""The command line: reads options, calls the rooms below, prints what they give. Nothing heavy is imported for help."""
