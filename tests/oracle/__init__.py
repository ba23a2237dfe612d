"""A deliberately different evaluator of ``docs/datapath.md``: one vector at a time, on Fractions.

It shares no code with the package: number formats are written down again and
read code by code, rounding compares exact values with neighbouring codes, and a
datapath is a plain dict.
"""

from oracle.interpreter import evaluate

__all__ = ["evaluate"]
