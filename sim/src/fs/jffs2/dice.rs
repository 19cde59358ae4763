//! JFFS2's pseudo-random choices: from which list it collects its next block, and whether an
//! emptied block is erased at once or set aside.
//!
//! Mirrors three places of fs/jffs2 (Linux 6.1) that take the tick's number modulo 128:
//! jffs2_find_gc_block (gc.c), jffs2_mark_node_obsolete (nodemgmt.c) and jffs2_refile_wbuf_blocks
//! (wbuf.c), which adds a counter. The tick follows from everything before it: a kernel that began
//! some microseconds later would choose differently. What a kernel was seen to choose may be given
//! instead (docs/validation.md, *The kernel's choices*).
//!
//! Invariant: each recorded number is used once, in the order of its place in the kernel. A place
//! that asks more often goes on with ticks of its own.

/// The numbers that a choice is made by: 0 to 127.
const SIDES: u64 = 128;
/// A recorded number is that of the choice and this for each place before its own.
const PLACES: usize = 3;

/// Where the kernel chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// jffs2_find_gc_block: the list that the next block is taken from.
    Collect,
    /// jffs2_mark_node_obsolete: 0 sets a block aside that has nothing left.
    Obsolete,
    /// jffs2_refile_wbuf_blocks: the same of a block that waited for the write buffer.
    Refile,
}

/// A kernel's choices, and all that were made since they were given.
#[derive(Clone, Debug, Default)]
pub(super) struct Dice {
    seen: [Vec<u64>; PLACES],
    asked: [usize; PLACES],
    thrown: Vec<u16>,
}

impl Dice {
    /// What a kernel chose from now on, in its order.
    pub fn seen(throws: &[u16]) -> Dice {
        let mut dice = Dice::default();
        for &throw in throws {
            let (place, number) = (u64::from(throw) / SIDES, u64::from(throw) % SIDES);
            assert!(place < PLACES as u64, "{throw} is no choice of JFFS2's");
            dice.seen[place as usize].push(number);
        }
        dice
    }

    /// The number that decides at a place; `jiffies` is what the kernel there would take modulo
    /// 128.
    pub fn throw(&mut self, place: Place, jiffies: u64) -> u64 {
        let at = place as usize;
        let seen = self.seen[at].get(self.asked[at]).copied();
        let throw = seen.unwrap_or(jiffies % SIDES);
        self.asked[at] += 1;
        self.thrown.push((at as u64 * SIDES + throw) as u16);
        throw
    }

    /// All choices since then.
    pub fn thrown(&self) -> &[u16] {
        &self.thrown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_choices_come_first_and_once() {
        let mut dice = Dice::seen(&[5, 127]);
        let mut throw = |jiffies| dice.throw(Place::Collect, jiffies);
        assert_eq!([throw(1), throw(2), throw(3 + 128)], [5, 127, 3]);
        assert_eq!(dice.thrown(), [5, 127, 3]);
        assert_eq!(Dice::default().throw(Place::Collect, 256 + 7), 7);
    }

    #[test]
    fn each_place_has_choices_of_its_own() {
        let mut dice = Dice::seen(&[256 + 9, 128, 5, 256]);
        assert_eq!(dice.throw(Place::Collect, 1), 5);
        assert_eq!(dice.throw(Place::Refile, 1), 9);
        assert_eq!(dice.throw(Place::Obsolete, 1), 0);
        assert_eq!(dice.throw(Place::Obsolete, 1), 1);
        assert_eq!(dice.throw(Place::Refile, 1), 0);
        assert_eq!(dice.thrown(), [5, 256 + 9, 128, 129, 256]);
    }
}
