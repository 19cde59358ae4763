"""What of the documents is generated from the program: reference pages, outputs of notebooks.

`make docs-generated` (`python -m docs.generate`) writes them, and tests hold what is committed
equal to what is generated. This stands beside the documents and not in the package: a user of the
wheel has no use for it, and the site's own venv needs nothing of the program.
"""
