"""The paper's figures and tables as data: cells to run, one runner, and a comparison with the printed numbers.

``registry.py`` knows the experiments by name, ``catalogue/`` has one file for each, ``reproduce.py`` runs them.
"""
