"""Coverage: into which cells the vectors of a comparison fall, counted on a sample; and the cells that none reached."""
