//! The dice that JFFS2 throws for the list from which the next block is collected.
//!
//! Mirrors `jiffies % 128` of jffs2_find_gc_block (fs/jffs2/gc.c, Linux 6.1). Which tick a throw falls into follows from everything before it, so
//! that a kernel which began some microseconds later would throw others. What a kernel was seen to throw may be given instead
//! (docs/validation.md, *The kernel's choices*).
//!
//! Invariant: throws are given once each, in order; whoever throws more often has the ticks of its own for the rest.

/// The numbers that a throw gives: 0 to 127.
const SIDES: u64 = 128;

/// A kernel's throws, and all that were thrown since they were given.
#[derive(Clone, Debug, Default)]
pub(super) struct Dice {
    seen: Vec<u8>,
    thrown: Vec<u8>,
}

impl Dice {
    /// What a kernel threw from now on.
    pub fn seen(throws: &[u8]) -> Dice {
        assert!(
            throws.iter().all(|&throw| u64::from(throw) < SIDES),
            "the dice have {SIDES} sides"
        );
        Dice { seen: throws.to_vec(), thrown: Vec::new() }
    }

    /// The next throw, at a tick.
    pub fn throw(&mut self, jiffies: u64) -> u64 {
        let seen = self.seen.get(self.thrown.len()).copied();
        let throw = seen.unwrap_or((jiffies % SIDES) as u8);
        self.thrown.push(throw);
        u64::from(throw)
    }

    /// All throws since then.
    pub fn thrown(&self) -> &[u8] {
        &self.thrown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_throws_come_first_and_once() {
        let mut dice = Dice::seen(&[5, 127]);
        assert_eq!([dice.throw(1), dice.throw(2), dice.throw(3 + 128)], [5, 127, 3]);
        assert_eq!(dice.thrown(), [5, 127, 3]);
        assert_eq!(Dice::default().throw(256 + 7), 7);
    }
}
