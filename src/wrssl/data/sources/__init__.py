"""The named scenarios, one file each: ``KINDS`` (kinds of foreign rows, the default first) and ``load``."""
