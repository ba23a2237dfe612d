"""Black-box probes, one file a question; they know devices and formats, never models."""
