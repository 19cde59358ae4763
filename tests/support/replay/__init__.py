"""Programs recorded on real boards, run again on a target (evidence/board-traces.md)."""
