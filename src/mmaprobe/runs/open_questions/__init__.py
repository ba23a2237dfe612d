"""The open questions: claims as data, and the answers of a device."""
