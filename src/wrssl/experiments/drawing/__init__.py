"""Figures of experiments: ``figure.py`` lays out the panels, one file per kind of panel, ``style.py`` for all."""
