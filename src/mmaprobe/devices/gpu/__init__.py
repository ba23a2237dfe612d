"""What every GPU device does, whoever made it."""
