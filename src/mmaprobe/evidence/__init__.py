"""Records of runs, recordings and witnesses: one store, nothing half-written."""
