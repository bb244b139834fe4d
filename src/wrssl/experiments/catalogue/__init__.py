"""One file per experiment; ``cells.py`` makes single cells, ``ratios.py`` what the four parts of Figure 4 share."""
