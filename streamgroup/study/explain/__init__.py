"""What the loads of the most loaded workers are made of: hot keys, collisions, key groups, or chance."""
