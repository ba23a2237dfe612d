"""A datapath in words, as a tree, and at work on one vector."""
