"""mmaprobe: find out, bit for bit, what a matrix unit computes, and prove it."""

from importlib import metadata

__version__ = metadata.version("mmaprobe")
