//! Energy of a case above idle, from the constants of its board (docs/models/energy.md).
//!
//! Two conventions that nothing adds up: the case's time times the mean power of such an activity
//! (`paper`, or `supply` where only the whole supply was measured), and what each component did
//! times its price.
//!
//! Invariants: 1. An energy is unknown if anything that it needs is unknown: the time, a row, a
//! constant. 2. What did not happen takes 0, whether its constant is known or not. 3. Integers in,
//! integers out: nanojoules, each rounded once.

use serde::Deserialize;

/// What does not change a file.
const READING: [&str; 6] = ["open", "close", "read", "fadvise", "pause", "drop_caches"];
const COMPUTING: [&str; 2] = ["compute", "sql"];
const PAUSE: &str = "pause";
/// Reads and writes below the file system; no byte of them reaches the program.
const WITHOUT_COPY: &str = "mtd-driver";

/// Of reads, programs and erases of the flash, in this order.
pub type PerKind<T> = [T; 3];

/// `[energy]` of a board's profile, without its sources.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    powers: Vec<MeanPower>,
    component: Option<Component>,
}

/// Mean powers above idle, and the case that they hold for; a missing key matches every case.
#[derive(Deserialize, Debug)]
struct MeanPower {
    activity: String,
    fs: Option<String>,
    pattern: Option<String>,
    read_ahead: Option<String>,
    #[serde(flatten)]
    power: Power,
}

#[derive(Deserialize, Debug, Clone, Copy)]
#[serde(untagged)]
enum Power {
    Rails { cpu_uw: i64, mem_uw: i64 },
    Supply { supply_uw: i64 },
}

/// What each component takes; None is not known.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
struct Component {
    cpu_busy_uw: Option<i64>,
    memory_busy_uw: Option<i64>,
    memory_byte_pj: Option<i64>,
    driver_read_ns: Option<i64>,
    driver_program_ns: Option<i64>,
    driver_erase_ns: Option<i64>,
    driver_read_nj: Option<i64>,
    driver_program_nj: Option<i64>,
    driver_erase_nj: Option<i64>,
    flash_read_nj: Option<i64>,
    flash_program_nj: Option<i64>,
    flash_erase_nj: Option<i64>,
    bus_read_nj: Option<i64>,
    bus_program_nj: Option<i64>,
}

/// What the condition of a mean power is held against.
#[derive(Clone, Copy, Debug)]
pub struct Condition<'a> {
    /// What the program does ([`activity`]).
    pub activity: Option<&'a str>,
    /// The file system.
    pub fs: &'a str,
    /// The pattern of access. A row of `random` holds for every random order.
    pub pattern: &'a str,
    /// The window of read-ahead; 0 is off.
    pub read_ahead_kib: u32,
}

/// What a case did; None is unknown.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Its time, pauses left out.
    pub time_ns: Option<i64>,
    /// Bytes that reads and writes moved.
    pub bytes: Option<i64>,
    /// Operations of the flash.
    pub done: PerKind<Option<i64>>,
    /// Those of them that began in a pause.
    pub in_pauses: PerKind<Option<i64>>,
}

/// Names of the energies, as columns of `cases`.
pub const COLUMNS: [&str; 10] = [
    "energy_nj",
    "energy_cpu_nj",
    "energy_mem_nj",
    "component_cpu_busy_nj",
    "component_cpu_driver_nj",
    "component_memory_nj",
    "component_flash_read_nj",
    "component_flash_program_nj",
    "component_flash_erase_nj",
    "component_bus_nj",
];

/// The energies of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Energies {
    /// `paper` or `supply`, if such a power is known.
    pub convention: Option<&'static str>,
    /// By [`COLUMNS`], in nanojoules.
    pub columns: [Option<i128>; COLUMNS.len()],
}

/// What a program does: `read` if it only reads, `write` if it changes anything, None if it also
/// computes.
pub fn activity<'a>(ops: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    let (mut is_awake, mut only_reads) = (false, true);
    for op in ops {
        if COMPUTING.contains(&op) {
            return None;
        }
        is_awake |= op != PAUSE;
        only_reads &= READING.contains(&op);
    }
    is_awake.then_some(if only_reads { "read" } else { "write" })
}

/// Stretches of time, each of pauses or of other calls.
pub struct Stretches {
    begins: Vec<i64>,
    are_pauses: Vec<bool>,
}

impl Stretches {
    /// Of calls by their begin: when each began, and whether it is a pause.
    pub fn new(calls: impl IntoIterator<Item = (i64, bool)>) -> Stretches {
        let (mut begins, mut are_pauses) = (Vec::new(), Vec::new());
        for (begin, is_pause) in calls {
            if are_pauses.last() != Some(&is_pause) {
                begins.push(begin);
                are_pauses.push(is_pause);
            }
        }
        Stretches { begins, are_pauses }
    }

    /// How many operations of the flash, each with its begin and the number of its kind, began in
    /// a pause.
    pub fn in_pauses(&self, ops: impl IntoIterator<Item = (i64, usize)>) -> PerKind<i64> {
        let mut found = [0; 3];
        for (begin, kind) in ops {
            let after = self.begins.partition_point(|&other| other <= begin);
            if after > 0 && self.are_pauses[after - 1] {
                found[kind] += 1;
            }
        }
        found
    }
}

impl Constants {
    /// The number of the most specific row of mean powers that holds.
    #[must_use]
    pub fn power_row(&self, of: Condition<'_>) -> Option<usize> {
        let activity = of.activity?;
        let pattern = if of.pattern.starts_with("random-") { "random" } else { of.pattern };
        let case = [activity, of.fs, pattern, if of.read_ahead_kib > 0 { "on" } else { "off" }];
        let holding = self.powers.iter().enumerate().filter(|(_, row)| {
            row.condition().iter().zip(case).all(|(known, its)| known.is_none_or(|own| own == its))
        });
        // Two rows cannot be equally specific with the same keys, so the earlier key decides.
        let (number, _) = holding.max_by_key(|(_, row)| {
            let given = row.condition().map(|known| known.is_some());
            (given.iter().filter(|&&is_given| is_given).count(), given)
        })?;
        Some(number)
    }

    /// The energies of a case.
    #[must_use]
    pub fn energies(&self, of: Condition<'_>, work: Work) -> Energies {
        let mut found = self.by_mean_power(of, work);
        if let Some(component) = &self.component {
            found.columns[3..].copy_from_slice(&component.energies(of.fs, work));
        }
        found
    }

    fn by_mean_power(&self, of: Condition<'_>, work: Work) -> Energies {
        let mut found = Energies::default();
        if let (Some(row), Some(time_ns)) = (self.power_row(of), work.time_ns) {
            match self.powers[row].power {
                Power::Supply { supply_uw } => {
                    found.convention = Some("supply");
                    found.columns[0] = Some(nanojoules(time_ns.into(), supply_uw));
                }
                Power::Rails { cpu_uw, mem_uw } => {
                    let [cpu, mem] = [cpu_uw, mem_uw].map(|uw| nanojoules(time_ns.into(), uw));
                    found.convention = Some("paper");
                    found.columns[..3].copy_from_slice(&[cpu + mem, cpu, mem].map(Some));
                }
            }
        }
        found
    }
}

impl MeanPower {
    /// What no other row of a table has.
    fn condition(&self) -> [Option<&str>; 4] {
        [
            Some(&*self.activity),
            self.fs.as_deref(),
            self.pattern.as_deref(),
            self.read_ahead.as_deref(),
        ]
    }
}

impl Component {
    fn energies(&self, fs: &str, work: Work) -> [Option<i128>; 7] {
        let driver = [self.driver_read_nj, self.driver_program_nj, self.driver_erase_nj];
        let bus = [self.bus_read_nj, self.bus_program_nj];
        let [reads, programs, erases] = work.done;
        let busy_ns = self.busy_ns(work);
        let copied = if fs == WITHOUT_COPY { Some(0) } else { work.bytes };
        let memory = self.memory_nj(copied, busy_ns);
        [
            during(self.cpu_busy_uw, busy_ns),
            each(&driver, &work.done),
            memory,
            times(self.flash_read_nj, reads),
            times(self.flash_program_nj, programs),
            times(self.flash_erase_nj, erases),
            each(&bus, &work.done[..2]),
        ]
    }

    /// Energy of memory: the CPU's work outside the driver, and bytes of the program.
    fn memory_nj(&self, copied: Option<i64>, busy_ns: Option<i128>) -> Option<i128> {
        let moved_pj = times(self.memory_byte_pj, copied)?;
        Some(during(self.memory_busy_uw, busy_ns)? + (moved_pj + 500).div_euclid(1000))
    }

    /// The CPU's time outside the driver, in calls that are no pauses.
    fn busy_ns(&self, work: Work) -> Option<i128> {
        let mut in_calls = work.done;
        for (count, in_pauses) in in_calls.iter_mut().zip(work.in_pauses) {
            // What is not known of no operation does not matter.
            if in_pauses != Some(0) {
                *count = Some((*count)? - in_pauses?);
            }
        }
        let prices = [self.driver_read_ns, self.driver_program_ns, self.driver_erase_ns];
        let rest = i128::from(work.time_ns?) - each(&prices, &in_calls)?;
        (rest >= 0).then_some(rest)
    }
}

/// A time at a power, rounded; 1 ns at 1 uW is a millionth of a nanojoule.
fn nanojoules(time_ns: i128, power_uw: i64) -> i128 {
    (time_ns * i128::from(power_uw) + 500_000).div_euclid(1_000_000)
}

/// A power for so long: 0 if that is no time.
fn during(power_uw: Option<i64>, time_ns: Option<i128>) -> Option<i128> {
    match time_ns? {
        0 => Some(0),
        time_ns => Some(nanojoules(time_ns, power_uw?)),
    }
}

/// A price times a count: 0 if the count is 0, else unknown unless both are known.
fn times(price: Option<i64>, count: Option<i64>) -> Option<i128> {
    match count? {
        0 => Some(0),
        count => Some(i128::from(price?) * i128::from(count)),
    }
}

/// The sum of kinds of operations.
fn each(prices: &[Option<i64>], counts: &[Option<i64>]) -> Option<i128> {
    prices.iter().zip(counts).map(|(&price, &count)| times(price, count)).sum()
}
