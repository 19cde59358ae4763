//! The random numbers of Python's `random.Random(seed).random()`.
//!
//! CPython seeds MT19937 by an array, the number's 32-bit words with the lowest first, and makes 53
//! bits of two draws (Modules/_randommodule.c: `random_seed`, `genrand_res53`).

use rand_mt::Mt;

/// A generator, as `random.Random(seed)` is one.
pub struct Draws(Mt);

impl Draws {
    /// One with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Draws {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        let words = if high == 0 { vec![low] } else { vec![low, high] };
        Draws(Mt::new_with_key(words))
    }

    /// The next `random()`: at least 0 and less than 1.
    pub fn unit(&mut self) -> f64 {
        let (high, low) = (self.0.next_u32() >> 5, self.0.next_u32() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// The next `int(random() * places)`.
    pub fn below(&mut self, places: u64) -> u64 {
        (self.unit() * places as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Draws;

    /// `[int(random.Random(seed).random() * 2**53)]` of CPython 3.11, for three seeds.
    #[test]
    fn draws_are_those_of_cpython() {
        let drawn = |seed: u64| {
            let mut draws = Draws::new(seed);
            [0; 3].map(|_| draws.below(1 << 53))
        };
        assert_eq!(drawn(0), SEED_0);
        assert_eq!(drawn(1), SEED_1);
        assert_eq!(drawn((7 << 32) + 5), SEED_7_5);
    }

    const SEED_0: [u64; 3] = [7_605_875_871_743_422, 6_827_046_333_291_546, 3_788_172_029_424_828];
    const SEED_1: [u64; 3] = [1_210_245_519_433_057, 7_633_004_523_783_416, 6_879_470_178_836_243];
    const SEED_7_5: [u64; 3] =
        [2_988_734_340_582_469, 3_385_859_959_952_842, 2_697_108_357_719_720];
}
