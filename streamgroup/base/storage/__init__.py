"""Files and folders by local path or URL, written atomically."""
