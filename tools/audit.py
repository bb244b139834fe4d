"""Known vulnerabilities in what is installed: pip-audit, and a summary that calls nothing clean that was not looked up.

Run it as `make audit`. It ends with 1 where a vulnerability is known, and with 0 otherwise, also where nothing could be
looked up, as without a network; the line that it prints says which of the two it was.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

COMMAND = ("-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--skip-editable", "--timeout", "15")


def summary(report: dict[str, Any]) -> tuple[str, int]:
    """What pip-audit's JSON says, in words, and the exit code.

    Args:
        report: has ``dependencies``, each with ``name`` and either ``vulns`` or ``skip_reason``.
    """
    packages = report.get("dependencies", [])
    audited = [package for package in packages if "vulns" in package]
    counts = f"{len(audited)} packages audited, {len(packages) - len(audited)} skipped"
    if not audited:
        reasons = [package["skip_reason"] for package in packages if package.get("skip_reason")]
        return f"not audited: {counts}" + (f" (the first: {reasons[0]})" if reasons else ""), 0
    known = [
        f"{package['name']} {package.get('version', '?')}: {found['id']}"
        f" (fixed in {', '.join(found.get('fix_versions') or []) or 'no version yet'})"
        for package in audited
        for found in package["vulns"]
    ]
    if known:
        return "\n".join([f"{len(known)} known vulnerabilities: {counts}", *known]), 1
    return f"no known vulnerability: {counts}", 0


def main() -> int:
    """Run pip-audit and print the summary."""
    done = subprocess.run([sys.executable, *COMMAND], capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:  # without a network it stops with an error instead of a report
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        print(f"not audited: 0 packages audited (pip-audit: {lines[-1].strip() if lines else 'no answer'})")
        return 0
    text, code = summary(report)
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
