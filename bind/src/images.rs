//! Flash images, read by `image`.

use crate::bug;
use image::{Given, Kind, Packing, Pages};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

/// A path of an image, and its inode.
#[pyclass(frozen, get_all)]
pub struct ImageFile {
    path: Vec<u8>,
    kind: &'static str,
    inode: u32,
    bytes: u64,
    stored_bytes: u64,
    mode: u32,
    uid: u32,
    gid: u32,
    links: u32,
    mtime_s: i64,
    target: Vec<u8>,
    device: Option<(u32, u32)>,
    xattrs: u32,
    compressors: Vec<String>,
    pieces: usize,
}

/// An image.
#[pyclass(frozen)]
pub struct Image(image::Image);

/// Python's form of what serde has.
fn described<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let json =
        serde_json::to_string(value).map_err(|why| PyValueError::new_err(why.to_string()))?;
    py.import("json")?.call_method1("loads", (json,))
}

#[pymethods]
impl Image {
    #[new]
    #[pyo3(signature = (data, *, page_bytes=None, oob_bytes=None, block_bytes=None))]
    fn new(
        py: Python<'_>,
        data: &[u8],
        page_bytes: Option<usize>,
        oob_bytes: Option<usize>,
        block_bytes: Option<usize>,
    ) -> PyResult<Image> {
        let pages = match (page_bytes, oob_bytes) {
            (None, None) => None,
            (None, Some(0)) => Some(Pages { page_bytes: 1, oob_bytes: 0 }),
            (Some(page_bytes), Some(oob_bytes)) if page_bytes > 0 => {
                Some(Pages { page_bytes, oob_bytes })
            }
            _ => return Err(PyValueError::new_err("a page and its OOB belong together")),
        };
        if block_bytes.is_some_and(|bytes| !bytes.is_power_of_two() || bytes < 4096) {
            return Err(PyValueError::new_err("a block has 4096 bytes, or twice as many, …"));
        }
        let given = Given { pages, block_bytes };
        let file = data.to_vec();
        let read = py.detach(|| bug::caught(|| image::Image::read(file, given)))?;
        read.map(Image).map_err(PyValueError::new_err)
    }

    #[getter]
    fn ubi<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        described(py, &self.0.ubi)
    }

    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        described(py, &self.0.parts)
    }

    #[getter]
    fn pages(&self) -> Option<(usize, usize)> {
        self.0.pages().map(|pages| (pages.page_bytes, pages.oob_bytes))
    }

    #[getter]
    fn problems(&self) -> Vec<String> {
        self.0.problems.first.clone()
    }

    #[getter]
    fn problem_count(&self) -> u64 {
        self.0.problems.count
    }

    fn files(&self, part: usize) -> PyResult<Vec<ImageFile>> {
        let tree = &self.part(part)?.tree;
        let with_inode = |file: &image::File| Some((file.clone(), tree.inodes.get(&file.inode)?));
        Ok(tree.files.iter().filter_map(with_inode).map(file_of).collect())
    }

    fn piece<'py>(
        &self,
        py: Python<'py>,
        part: usize,
        inode: u32,
        number: usize,
    ) -> PyResult<(u64, u32, Bound<'py, PyBytes>)> {
        let outside = || PyIndexError::new_err("no such piece");
        let inode = self.part(part)?.tree.inodes.get(&inode).ok_or_else(outside)?;
        let piece = inode.pieces.get(number).ok_or_else(outside)?;
        let bytes = bug::caught(|| self.0.piece(inode, piece))?.map_err(PyValueError::new_err)?;
        Ok((piece.at, piece.bytes, PyBytes::new(py, &bytes)))
    }
}

impl Image {
    /// It as `image` has it.
    pub fn inner(&self) -> &image::Image {
        &self.0
    }

    fn part(&self, part: usize) -> PyResult<&image::Part> {
        self.0.parts.get(part).ok_or_else(|| PyIndexError::new_err("no such part"))
    }
}

fn file_of((file, inode): (image::File, &image::Inode)) -> ImageFile {
    ImageFile {
        path: file.path,
        kind: Kind::of_mode(inode.mode).map_or("unknown", Kind::name),
        inode: file.inode,
        bytes: inode.bytes,
        stored_bytes: inode.stored_bytes(),
        mode: inode.mode,
        uid: inode.uid,
        gid: inode.gid,
        links: inode.links,
        mtime_s: inode.mtime_s,
        target: inode.target.clone(),
        device: inode.device,
        xattrs: inode.xattrs,
        compressors: inode.packings().into_iter().map(Packing::name).collect(),
        pieces: inode.pieces.len(),
    }
}
