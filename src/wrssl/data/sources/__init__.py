"""The named scenarios: each file has ``load(name, request)``; ``data/load.py`` lists their kinds of foreign rows."""
