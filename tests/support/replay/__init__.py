"""Programs recorded on real boards, run again on a target (docs/evidence/board-traces.md)."""
