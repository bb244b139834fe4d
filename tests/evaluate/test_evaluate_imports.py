"""The room loads quickly: tables and pictures are loaded by what draws or writes them."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_room_loads_no_pandas_no_matplotlib_and_no_template_engine():
    program = (
        "import sys; import wrssl.evaluate; "
        "print(*sorted({'pandas', 'matplotlib', 'jinja2', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
