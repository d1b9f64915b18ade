"""The stages beside the workers, and what workers hold."""
