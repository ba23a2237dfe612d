"""Counter-based recipes to batches; named families of hard cases."""
