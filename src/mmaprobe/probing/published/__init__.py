"""Published suites of experiments, and their words run again."""
