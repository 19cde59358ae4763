"""The classes that a policy of the user's derives from (policies/README.md)."""

from __future__ import annotations

from flashbed.stack.policies import ReadAhead, Reclaim, Reclaimed, Victim, Window

__all__ = ["ReadAhead", "Reclaim", "Reclaimed", "Victim", "Window"]
