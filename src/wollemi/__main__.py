"""``python -m wollemi`` runs the command ``wollemi``."""

from .cli import main

if __name__ == "__main__":
    main()
