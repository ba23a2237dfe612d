"""Counter-based recipes to batches; named families of hard cases."""

from mmaprobe.generators.families import FAMILIES, MIX, families_for, generate, plan
from mmaprobe.generators.recipe import Recipe, regenerate
from mmaprobe.generators.tiles import generate_tiles

__all__ = ["FAMILIES", "MIX", "Recipe", "families_for", "generate", "generate_tiles", "plan", "regenerate"]
