"""A validation of many instructions by a plan: cut into numbered parts, run in shards, merged into one evidence."""

from mmaprobe.campaigns.verbs import merge, validate_plan

__all__ = ["merge", "validate_plan"]
