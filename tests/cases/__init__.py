"""What the tests of several rooms ask about: datapaths, instructions, vectors, broken files."""
