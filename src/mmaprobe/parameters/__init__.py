"""The datapath record, its TOML form, one data file an architecture, and the meaning-level diff."""
