"""Programs recorded on real boards, run again on a target (docs/board-traces.md)."""
