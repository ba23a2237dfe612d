"""Seeded faults: what a careless hand or a bad merge would do to the project, and which tests must notice."""
