"""The named scenarios: each file has ``load(name, request)``; ``data/load.py`` lists their kinds of foreign rows.

Those that read files also have ``find(name, request)``, which only looks whether the files are there.
"""
