"""Findings to a datapath: elimination, discriminating search, certificate."""
