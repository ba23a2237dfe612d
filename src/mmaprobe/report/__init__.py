"""Show results: terminal, JSON, JUnit, HTML, plots, explanations."""
