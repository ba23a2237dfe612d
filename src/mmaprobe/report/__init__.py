"""Show results: tables, JSON, JUnit, pictures, explanations."""
