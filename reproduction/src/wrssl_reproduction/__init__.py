"""The experiments of the paper, run with ``wrssl``: ``wrssl reproduce NAME`` once this distribution is installed.

``catalogue/`` has an experiment per figure and table, as lists of cells (``cell.py``) under a budget (``budget.py``).
``reproduce.py`` runs the cells that have no row yet (``plan.py``, ``workers.py``, ``run.py``, ``rows.py``), then writes
the table (``statistics.py``, ``tables.py``) and the figure (``figure.py``, ``panels.py``). What only the paper's
published code does is in ``published_code.py``. Everything here uses public names of ``wrssl`` only.
"""
