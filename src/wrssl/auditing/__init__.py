"""``wrssl.audit``: does this pool help or hurt?"""

from wrssl.auditing.answer import Audit
from wrssl.auditing.run import audit

__all__ = ["Audit", "audit"]
