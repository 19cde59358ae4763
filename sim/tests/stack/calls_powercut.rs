//! After a power cut, names that were created and removed exist or not, with no state in between.

use crate::support;
use sim::run::survey::Survey;
use sim::run::{run_cases, CaseInput, FsKind, Measured};

/// A call, and the files' names after it. Each call is synced before the next.
type Step = (&'static str, &'static [&'static str]);

const BEFORE: &str = "flashbed-ops 2\n\
    open 0 a rw,create\nwrite 0 0 9000 7 0\nclose 0\nsync\nmark\n";
const STEPS: [Step; 7] = [
    ("link a b", &["a", "b"]),
    ("symlink a s", &["a", "b", "s"]),
    ("chmod a 384", &["a", "b", "s"]),
    ("unlink a", &["b", "s"]),
    ("link b c", &["b", "c", "s"]),
    ("unlink b", &["c", "s"]),
    ("unlink s", &["c"]),
];
const ON_UBIFS: [Step; 6] = [
    ("setxattr c user.one 300 1 0", &["c"]),
    ("setxattr c user.one 30 1 0", &["c"]),
    ("open 1 . rw,tmpfile\nwrite 1 0 3000 7 0\nlink SLOT:1 t", &["c", "t"]),
    ("removexattr c user.one", &["c", "t"]),
    ("setxattr t user.two 2000 1 0", &["c", "t"]),
    ("close 1\nunlink t", &["c"]),
];

fn measure(fs: FsKind, body: &str, cuts: &[u64]) -> Measured {
    let mut board = support::board("emulated");
    board.partition.blocks = if fs == FsKind::Jffs2 { 40 } else { 96 };
    let kernel = support::kernel("6.1");
    let setting = support::setting(&board, &kernel, fs, "flashbed-ops 1\nprepared\n");
    let case = CaseInput { read_ahead_kib: 0, body, cuts, gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0).unwrap_or_else(|error| panic!("{error}"))
}

fn names(survey: &Survey) -> Vec<&str> {
    survey.files.iter().map(|file| file.path.as_str()).collect()
}

/// Cuts the power in every change of the steps.
fn survive(fs: FsKind, steps: &[Step]) {
    let lines = |(calls, _): &Step| format!("{calls}\nsync\n");
    let body: String = std::iter::once(BEFORE.to_owned()).chain(steps.iter().map(lines)).collect();
    let changes = measure(fs, &body, &[]).requests.last().expect("a sync").changes;
    let cuts: Vec<u64> = (1..=changes).collect();
    let measured = measure(fs, &body, &cuts);
    assert_eq!(measured.surveys.len() as u64, changes);
    // The request that ends each step.
    let calls = steps.iter().map(|(calls, _)| calls.lines().count() + 1);
    let ends: Vec<usize> = calls
        .scan(0, |at, calls| {
            *at += calls;
            Some(*at)
        })
        .collect();
    for survey in &measured.surveys {
        let over = measured.requests.iter().take_while(|request| request.changes < survey.change);
        let over = over.count();
        let done = ends.iter().take_while(|&&end| end <= over).count();
        let before: &[&str] = if done == 0 { &["a"] } else { steps[done - 1].1 };
        let after = steps.get(done).map_or(before, |step| step.1);
        let found = names(survey);
        let known = found == before || found == after;
        assert!(known, "{fs:?}, change {}: {found:?}", survey.change);
        assert_eq!((survey.mount_result, survey.probe_result), (0, Some(0)));
        for file in survey.files.iter().filter(|file| file.path != "t") {
            assert_eq!(file.target.as_deref(), (file.path == "s").then_some("a"));
            if file.target.is_some() {
                continue;
            }
            let seeds = file.runs.iter().map(support::powercut::seed_of);
            assert_eq!((file.size_bytes, Vec::from_iter(seeds)), (9000, vec![Some(7)]));
        }
    }
}

#[test]
fn links_survive_a_cut_in_any_change_on_jffs2() {
    survive(FsKind::Jffs2, &STEPS);
}

#[test]
fn links_survive_a_cut_in_any_change_on_yaffs2() {
    survive(FsKind::Yaffs2, &STEPS);
}

#[test]
fn links_attributes_and_files_without_a_name_survive_a_cut_on_ubifs() {
    survive(FsKind::Ubifs, &[STEPS.as_slice(), &ON_UBIFS].concat());
}
