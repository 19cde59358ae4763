//! JFFS2's pseudo-random choices: from which list the collector takes its next block, and whether
//! an emptied block is erased at once or set aside.
//!
//! Mirrors three places of fs/jffs2 (Linux 6.1) that compute `jiffies % 128`: jffs2_find_gc_block
//! (gc.c), jffs2_mark_node_obsolete (nodemgmt.c) and jffs2_refile_wbuf_blocks (wbuf.c), which adds
//! a counter. The tick depends on all that happened before: a kernel that starts some microseconds
//! later chooses differently. A run can therefore replay the choices of a recorded kernel
//! (evidence/validation.md, *The kernel's choices*).
//!
//! Invariant: each recorded choice is used once, in the order of its place. When a place's recorded
//! choices are used up, it computes its own.

/// Choices are numbers from 0 to 127.
const NUMBERS: u64 = 128;
/// A recorded choice is encoded as place * `NUMBERS` + number.
const PLACES: usize = 3;

/// The kernel function that chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChosenIn {
    /// jffs2_find_gc_block: the list from which the next block is taken.
    Collect,
    /// jffs2_mark_node_obsolete: 0 sets the emptied block aside.
    Obsolete,
    /// jffs2_refile_wbuf_blocks: the same for a block that waited for the write buffer.
    Refile,
}

/// A kernel's recorded choices, and the choices made since.
#[derive(Clone, Debug, Default)]
pub(super) struct GcChoices {
    recorded: [Vec<u64>; PLACES],
    used: [usize; PLACES],
    made: Vec<u16>,
}

impl GcChoices {
    /// Replays these recorded choices.
    pub fn replaying(recorded: &[u16]) -> GcChoices {
        let mut choices = GcChoices::default();
        for &one in recorded {
            let (place, number) = (u64::from(one) / NUMBERS, u64::from(one) % NUMBERS);
            assert!(place < PLACES as u64, "{one} is no choice of JFFS2's");
            choices.recorded[place as usize].push(number);
        }
        choices
    }

    /// The next choice of a place: the recorded one, else `jiffies % 128`.
    pub fn choose(&mut self, place: ChosenIn, jiffies: u64) -> u64 {
        let at = place as usize;
        let recorded = self.recorded[at].get(self.used[at]).copied();
        let number = recorded.unwrap_or(jiffies % NUMBERS);
        self.used[at] += 1;
        self.made.push((at as u64 * NUMBERS + number) as u16);
        number
    }

    /// The choices made since the recorded ones were given.
    pub fn made(&self) -> &[u16] {
        &self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_choices_come_first_and_once() {
        let mut choices = GcChoices::replaying(&[5, 127]);
        let mut choose = |jiffies| choices.choose(ChosenIn::Collect, jiffies);
        assert_eq!([choose(1), choose(2), choose(3 + 128)], [5, 127, 3]);
        assert_eq!(choices.made(), [5, 127, 3]);
        assert_eq!(GcChoices::default().choose(ChosenIn::Collect, 256 + 7), 7);
    }

    #[test]
    fn each_place_has_choices_of_its_own() {
        let mut choices = GcChoices::replaying(&[256 + 9, 128, 5, 256]);
        assert_eq!(choices.choose(ChosenIn::Collect, 1), 5);
        assert_eq!(choices.choose(ChosenIn::Refile, 1), 9);
        assert_eq!(choices.choose(ChosenIn::Obsolete, 1), 0);
        assert_eq!(choices.choose(ChosenIn::Obsolete, 1), 1);
        assert_eq!(choices.choose(ChosenIn::Refile, 1), 0);
        assert_eq!(choices.made(), [5, 256 + 9, 128, 129, 256]);
    }
}
