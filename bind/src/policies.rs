//! Policies: objects of the user's Python classes, asked for each decision, and built-in ones.
//!
//! A stack's copy has a deep copy of its policy, so that cases of one preparation start from equal
//! states. A policy that raises, or returns what is no answer, ends its case with one line, in
//! which the user's file and line are. decisions.rs ends one that does not return.

use crate::decisions::Decision;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use sim::stop::misbehaved;
use sim::units::Ns;
use sim::vfs::readahead::{Asked, ReadAhead, Window};
use sim::vfs::reclaim::{CachedPages, PageUse, Reclaim, Reclaimed, Shortage};
use sim::vfs::FileCache;
use sim::victim::{Candidate, Victim, Why};
use std::fmt::{Debug, Formatter};
use std::path::Path;

/// What decides in the kernel's place.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct Policies(pub sim::run::Policies);

#[pymethods]
impl Policies {
    /// Each is an object, the name of a built-in policy, or None for the kernel's own.
    #[new]
    #[pyo3(signature = (*, read_ahead=None, reclaim=None, victim=None))]
    fn new(
        read_ahead: Option<&Bound<'_, PyAny>>,
        reclaim: Option<&Bound<'_, PyAny>>,
        victim: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Policies> {
        use sim::run::Policies as BuiltIn;
        Ok(Policies(BuiltIn {
            read_ahead: read_ahead
                .map(|given| chosen(given, BuiltIn::read_ahead_named, |own| Box::new(own)))
                .transpose()?,
            reclaim: reclaim
                .map(|given| chosen(given, BuiltIn::reclaim_named, |own| Box::new(own)))
                .transpose()?,
            victim: victim
                .map(|given| chosen(given, BuiltIn::victim_named, |own| Box::new(own)))
                .transpose()?,
        }))
    }
}

fn chosen<P: ?Sized>(
    given: &Bound<'_, PyAny>,
    named: fn(&str) -> Option<Box<P>>,
    boxed: fn(Own) -> Box<P>,
) -> PyResult<Box<P>> {
    match given.cast::<PyString>() {
        Ok(name) => named(&name.to_cow()?)
            .ok_or_else(|| PyValueError::new_err(format!("{name}: no built-in policy"))),
        Err(_) => Ok(boxed(Own::of(given)?)),
    }
}

/// An object of a user's class.
struct Own {
    object: Py<PyAny>,
    /// The class.
    name: String,
    /// Its file, as Python's frames name it.
    file: String,
}

impl Own {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Own> {
        let class = object.get_type();
        let module = class.py().import("sys")?.getattr("modules")?.get_item(class.module()?)?;
        let name = class.qualname()?.to_string();
        Ok(Own {
            object: object.clone().unbind(),
            name,
            file: module.getattr("__file__")?.extract()?,
        })
    }

    /// Calls a method, and reads its answer. Whatever goes wrong ends the case.
    fn asked<T>(
        &self,
        method: &'static str,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> T {
        Python::attach(|py| {
            let answer = Decision::begin(py).and_then(|decision| {
                let answer = call(self.object.bind(py));
                match (decision.end(), answer) {
                    (None, answer) => answer,
                    (Some(ended), Ok(_)) => Err(ended.into()),
                    (Some(ended), Err(error)) => {
                        let ended = PyErr::from(ended);
                        let place = error.traceback(py);
                        ended.value(py).setattr("__traceback__", place).and(Err(ended))
                    }
                }
            });
            answer.unwrap_or_else(|error| misbehaved(self.said(py, method, &error)))
        })
    }

    /// An error in one line, with the line of the user's file that raised it.
    fn said(&self, py: Python<'_>, method: &str, error: &PyErr) -> String {
        let line = self.line_of(py, error).map_or(String::new(), |line| format!(":{line}"));
        let Own { name, .. } = self;
        let here = std::env::current_dir().unwrap_or_default();
        let file = Path::new(&self.file);
        let file = file.strip_prefix(here).unwrap_or(file).display();
        let said = error.value(py).to_string();
        let kind = error.get_type(py).qualname().map_or(String::new(), |kind| kind.to_string());
        let said = if said.is_empty() { kind } else { format!("{kind}: {said}") };
        let words: Vec<_> = said.split_whitespace().collect();
        format!("{file}{line}: {name}.{method}: {}", words.join(" "))
    }

    /// The innermost line of the user's file in an error's traceback.
    fn line_of(&self, py: Python<'_>, error: &PyErr) -> Option<u32> {
        let mut frame = match error.traceback(py) {
            Some(raised) => raised.into_any(),
            None => error.value(py).getattr("__traceback__").ok()?,
        };
        let mut line = None;
        while !frame.is_none() {
            let code = frame.getattr("tb_frame").ok()?.getattr("f_code").ok()?;
            if code.getattr("co_filename").ok()?.extract::<String>().ok()? == self.file {
                line = frame.getattr("tb_lineno").ok()?.extract().ok();
            }
            frame = frame.getattr("tb_next").ok()?;
        }
        line
    }
}

impl Debug for Own {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}: {}", self.file, self.name)
    }
}

impl Clone for Own {
    fn clone(&self) -> Own {
        let object = self.asked("__deepcopy__", |object| {
            let copy = object.py().import("copy")?.getattr("deepcopy")?;
            Ok(copy.call1((object,))?.unbind())
        });
        Own { object, name: self.name.clone(), file: self.file.clone() }
    }
}

/// A method's answer as `T`, or an error that says what it returns.
fn answer<T>(returned: &Bound<'_, PyAny>, what: &str) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    returned.extract().map_err(|_| {
        let given = returned.repr().map_or(String::new(), |text| text.to_string());
        PyValueError::new_err(format!("returned {given:.80}; it returns {what}"))
    })
}

impl Victim for Own {
    fn choose(&mut self, now: Ns, why: Why, blocks: &[Candidate]) -> Option<Candidate> {
        let index: Option<usize> = self.asked("choose", |object| {
            let why = match why {
                Why::Space => "space",
                Why::Write => "write",
                Why::Idle => "idle",
            };
            let told = Candidates(blocks.to_vec());
            let method = intern!(object.py(), "choose");
            let returned = object.call_method1(method, (now.0, why, told))?;
            let index = answer(&returned, "a position in `blocks`, or None")?;
            match index {
                Some(index) if index >= blocks.len() => Err(PyValueError::new_err(format!(
                    "returned {index}, and there are {} blocks",
                    blocks.len()
                ))),
                index => Ok(index),
            }
        });
        index.map(|index| blocks[index])
    }
}

impl ReadAhead for Own {
    fn on_miss(&mut self, asked: Asked<'_>) -> Option<Window> {
        self.window("on_miss", asked)
    }

    fn on_marker(&mut self, asked: Asked<'_>) -> Option<Window> {
        self.window("on_marker", asked)
    }
}

/// The largest window that is an answer: 4 GiB.
const WINDOW_PAGES_MAX: u32 = 1 << 20;

impl Own {
    /// Asks for a window, and notes it as the kernel would in `file_ra_state`.
    fn window(&self, method: &'static str, asked: Asked<'_>) -> Option<Window> {
        let told = ReadRequest::of(&asked);
        let window = self.asked(method, |object| {
            let returned = object.call_method1(method, (told,))?;
            let what = "a Window of a start, pages and a marker, or None";
            let window: Option<(u32, u32, Option<u32>)> = answer(&returned, what)?;
            let Some((start, pages, marker)) = window else { return Ok(None) };
            let inside = |marker: u32| (start..start.saturating_add(pages)).contains(&marker);
            if pages > WINDOW_PAGES_MAX || marker.is_some_and(|marker| !inside(marker)) {
                return Err(PyValueError::new_err(format!(
                    "returned {}; a window has at most {WINDOW_PAGES_MAX} pages, and its marker \
                     is one of them",
                    returned.repr()?
                )));
            }
            Ok(Some(Window { start, pages, marker }))
        })?;
        let state = asked.state;
        (state.start, state.size) = (window.start, window.pages);
        state.async_size = window.marker.map_or(0, |marker| window.start + window.pages - marker);
        Some(window)
    }
}

/// What a policy of read-ahead is told.
#[pyclass(frozen, get_all, module = "flashbed._sim")]
pub struct ReadRequest {
    page: u32,
    wanted_pages: u32,
    file_pages: u32,
    max_pages: u32,
    previous_page: i64,
    window_start: u32,
    window_pages: u32,
    marked_pages: u32,
    cached_before: u32,
    missing_pages: u32,
}

impl ReadRequest {
    fn of(asked: &Asked<'_>) -> ReadRequest {
        let Asked { ref state, cache, page, wanted } = *asked;
        let max_pages = state.max_pages;
        ReadRequest {
            page,
            wanted_pages: wanted,
            file_pages: cache.pages(),
            max_pages,
            previous_page: state.previous_page,
            window_start: state.start,
            window_pages: state.size,
            marked_pages: state.async_size,
            cached_before: cached_before(cache, page, max_pages),
            missing_pages: missing_pages(cache, page, max_pages),
        }
    }
}

/// Cached pages right before `page`, `most` at most.
fn cached_before(cache: &FileCache, page: u32, most: u32) -> u32 {
    let first = page.saturating_sub(most);
    let before = (first..page).rev().take_while(|&page| cache.contains(page));
    before.count() as u32
}

/// Pages from `page` on that are not cached, `most` at most.
fn missing_pages(cache: &FileCache, page: u32, most: u32) -> u32 {
    let end = page.saturating_add(most).min(cache.pages());
    (page..end).take_while(|&page| !cache.contains(page)).count() as u32
}

impl Reclaim for Own {
    fn choose(&mut self, short: Shortage, pages: &CachedPages<'_>) -> Reclaimed {
        let pages: Vec<_> = pages.oldest_first().collect();
        let named = |positions: Vec<usize>| positions.iter().map(|&at| pages[at]).collect();
        let (free, keep) = self.asked("choose", |object| {
            let told = Pages(pages.clone());
            let method = intern!(object.py(), "choose");
            let returned = object.call_method1(method, (short.needed, short.wanted, told))?;
            let what = "a Reclaimed of positions in `pages`";
            let (free, keep): (Vec<usize>, Vec<usize>) = answer(&returned, what)?;
            let mut all: Vec<_> = free.iter().chain(&keep).copied().collect();
            all.sort_unstable();
            let wrong = match all.last() {
                None => Some("names no page".to_string()),
                Some(&last) if last >= pages.len() => {
                    Some(format!("names page {last}, and there are {} pages", pages.len()))
                }
                _ => all
                    .windows(2)
                    .find(|two| two[0] == two[1])
                    .map(|two| format!("names page {} twice", two[0])),
            };
            match wrong {
                Some(wrong) => Err(PyValueError::new_err(wrong)),
                None => Ok((free, keep)),
            }
        });
        Reclaimed { free: named(free), keep: named(keep) }
    }
}

/// The cached pages that a policy of reclaim chooses from, the one whose last use is the oldest
/// first: rows, and columns for numpy.
#[pyclass(frozen, name = "CachedPages", module = "flashbed._sim")]
pub struct Pages(Vec<PageUse>);

#[pymethods]
impl Pages {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn file<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |page| i64::from(page.file))
    }

    #[getter]
    fn page<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |page| i64::from(page.page))
    }

    #[getter]
    fn is_dirty<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |page| i64::from(page.is_dirty))
    }

    #[getter]
    fn uses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |page| i64::from(page.uses))
    }

    #[getter]
    fn last_use<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |page| page.last_use as i64)
    }
}

/// The blocks that a policy of collection chooses from: rows, and columns for numpy.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct Candidates(Vec<Candidate>);

/// What a count that a file system does not keep is in a column.
const UNKNOWN: i64 = -1;

#[pymethods]
impl Candidates {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn block<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |block| i64::from(block.block))
    }

    #[getter]
    fn live_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |block| i64::from(block.live_bytes))
    }

    #[getter]
    fn dirty_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |block| i64::from(block.dirty_bytes))
    }

    #[getter]
    fn free_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |block| i64::from(block.free_bytes))
    }

    #[getter]
    fn erases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |block| block.erases.map_or(UNKNOWN, i64::from))
    }

    #[getter]
    fn sequence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.0, |block| block.sequence.map_or(UNKNOWN, i64::from))
    }

    #[getter]
    fn list(&self) -> Vec<&'static str> {
        self.0.iter().map(|block| block.list).collect()
    }
}

/// A column of rows as a memory view of 64-bit integers.
fn column<'py, R>(
    py: Python<'py>,
    rows: &[R],
    value: impl Fn(&R) -> i64,
) -> PyResult<Bound<'py, PyAny>> {
    let bytes: Vec<u8> = rows.iter().flat_map(|row| value(row).to_ne_bytes()).collect();
    PyMemoryView::from(&PyBytes::new(py, &bytes).into_any())?.call_method1("cast", ("q",))
}
