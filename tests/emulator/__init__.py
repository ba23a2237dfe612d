"""A warp emulator: a kernel's own load and store, compiled for the host, run lane by lane between arrays and registers.

What a fragment is comes from a second source (CuTe's layouts, restated in ``cute``), never from the catalog.
"""
