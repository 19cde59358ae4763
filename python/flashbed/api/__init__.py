"""What `import flashbed as fb` offers; the command line calls it too.

The names are those of flashbed/__init__.py; docs/python.md is the reference.
"""
