"""One question's conversation with a device: exact values in, exact values out."""
