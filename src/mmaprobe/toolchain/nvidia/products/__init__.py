"""Our own kernels of whole matrix products: their source, their schedule, and their machine code read back."""
