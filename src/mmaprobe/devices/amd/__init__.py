"""AMD's GPUs: the device ``hip:N``."""
