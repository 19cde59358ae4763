//! Another choice of the pages that leave a page cache that is full.

use super::uses::{CachedPages, PageUse};
use core::fmt::Debug;
use dyn_clone::DynClone;
use std::collections::BTreeMap;

/// By how many pages memory is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Pages above the low watermark. So many have to go.
    pub needed: usize,
    /// Pages above the high watermark: the kernel frees so many at once.
    pub wanted: usize,
}

/// What a policy decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Pages to free. A clean one leaves the cache now. For a dirty one the flusher is woken, and
    /// the page stays where it is.
    pub free: Vec<PageUse>,
    /// Pages that count as used now.
    pub keep: Vec<PageUse>,
}

/// A policy of page-cache replacement: which pages leave memory that is short.
///
/// Without one the kernel's two lists decide (shrink_lruvec). A policy is asked before a page is
/// added to a cache that is full. As in the kernel, reclaim writes nothing: it wakes the flusher
/// (wakeup_flusher_threads), and until that has written, memory is exceeded.
///
/// # Examples
///
/// The page that was used most recently:
///
/// ```
/// use sim::vfs::reclaim::{CachedPages, Reclaim, Reclaimed, Shortage};
/// #[derive(Clone, Debug)]
/// struct MostRecent;
///
/// impl Reclaim for MostRecent {
///     fn choose(&mut self, short: Shortage, pages: &CachedPages<'_>) -> Reclaimed {
///         let free = pages.oldest_first().rev().take(short.needed).collect();
///         Reclaimed { free, ..Reclaimed::default() }
///     }
/// }
/// ```
pub trait Reclaim: DynClone + Debug + Send + Sync {
    /// Names at least one of `pages`.
    fn choose(&mut self, short: Shortage, pages: &CachedPages<'_>) -> Reclaimed;
}

dyn_clone::clone_trait_object!(Reclaim);

/// Least recently used: the page whose last use is the oldest, clean or dirty.
#[derive(Clone, Copy, Debug)]
pub struct LeastRecent;

impl Reclaim for LeastRecent {
    fn choose(&mut self, short: Shortage, pages: &CachedPages<'_>) -> Reclaimed {
        let free = pages.oldest_first().take(short.needed).collect();
        Reclaimed { free, ..Reclaimed::default() }
    }
}

/// Clean pages first, the oldest of them first: CFLRU (Park, Jung, Kang, Kim, Lee: CFLRU, a
/// replacement algorithm for flash memory, CASES 2006), whose window is all pages or the oldest of
/// them. If all in the window are dirty, the oldest goes.
#[derive(Clone, Copy, Debug)]
pub struct CleanFirst {
    /// One in so many pages, the oldest ones, is in the window.
    pub window_divisor: usize,
}

impl Reclaim for CleanFirst {
    fn choose(&mut self, short: Shortage, pages: &CachedPages<'_>) -> Reclaimed {
        let window = pages.len().div_ceil(self.window_divisor);
        let clean = pages.oldest_first().take(window).filter(|page| !page.is_dirty);
        let mut free: Vec<_> = clean.take(short.needed).collect();
        if free.is_empty() {
            free.extend(pages.oldest_first().take(short.needed));
        }
        Reclaimed { free, ..Reclaimed::default() }
    }
}

/// LRU-WSR (Jung, Shim, Park, Kang, Cha: LRU-WSR, integration of LRU and writes sequence
/// reordering for flash memory, 2008): a dirty page at the end of the list is kept once, unless it
/// was not used since it was last kept.
#[derive(Clone, Debug, Default)]
pub struct SecondChance {
    /// Pages that are cold, and their number of uses when they became so.
    cold: BTreeMap<(u32, u32), u32>,
}

impl Reclaim for SecondChance {
    fn choose(&mut self, short: Shortage, pages: &CachedPages<'_>) -> Reclaimed {
        let mut chosen = Reclaimed::default();
        for page in pages.oldest_first() {
            if chosen.free.len() == short.needed {
                break;
            }
            let name = (page.file, page.page);
            if page.is_dirty && self.cold.get(&name) != Some(&page.uses) {
                self.cold.insert(name, page.uses);
                chosen.keep.push(page);
            } else {
                // A dirty page stays cached, and cold, until it is written.
                if !page.is_dirty {
                    self.cold.remove(&name);
                }
                chosen.free.push(page);
            }
        }
        chosen
    }
}
