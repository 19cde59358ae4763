//! The places of index nodes at the last commit.
//!
//! Mirrors `old_idx` of struct ubifs_info (fs/ubifs/ubifs.h), which tnc.c of Linux 6.1 keeps in a
//! tree.

/// LEB and offset.
pub(super) type At = (u32, u32);

/// Places of the last commit's nodes (`old_idx`), by LEB: one bit for every 8 bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct OldIndex(Vec<Vec<u64>>);

impl OldIndex {
    fn word_and_bit(offset: u32) -> (usize, u64) {
        ((offset / 8 / u64::BITS) as usize, 1 << (offset / 8 % u64::BITS))
    }

    pub fn insert(&mut self, (leb, offset): At) {
        let (word, bit) = Self::word_and_bit(offset);
        let leb = leb as usize;
        if leb >= self.0.len() {
            self.0.resize(leb + 1, Vec::new());
        }
        let words = &mut self.0[leb];
        if word >= words.len() {
            words.resize(word + 1, 0);
        }
        words[word] |= bit;
    }

    pub fn contains(&self, (leb, offset): At) -> bool {
        let (word, bit) = Self::word_and_bit(offset);
        let words = self.0.get(leb as usize);
        words.and_then(|words| words.get(word)).is_some_and(|word| word & bit != 0)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}
