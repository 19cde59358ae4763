"""What `import flashbed as fb` offers, and what the command line is a layer over.

The names are those of flashbed/__init__.py; docs/python.md is the reference.
"""
