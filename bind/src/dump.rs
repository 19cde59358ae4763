//! What a device's flash held, for the simulator to begin with.

use crate::images::Image;
use crate::{board, bug};
use image::{dumped_jffs2, dumped_ubi, Chip, Content};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::IntoDeserializer;
use serde::Deserialize;
use sim::compress::UbifsCompressor;
use sim::run;
use std::sync::Arc;

/// An image or a dump as the simulator has it; see `_sim.pyi`.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct Dump(pub run::Dump);

#[pymethods]
impl Dump {
    #[new]
    #[pyo3(signature = (image, board_json, volume=None, compressor=None))]
    fn new(
        py: Python<'_>,
        image: &Image,
        board_json: &str,
        volume: Option<&str>,
        compressor: Option<&str>,
    ) -> PyResult<Dump> {
        let unknown = |why| PyValueError::new_err(format!("compressor: {why}"));
        let compressor = compressor.map(|name| name.into_deserializer());
        let compressor = compressor.map(UbifsCompressor::deserialize).transpose();
        let compressor = compressor.map_err(|why: serde::de::value::Error| unknown(why))?;
        let chip = board(board_json)?.chip;
        let chip = Chip {
            page_bytes: chip.page_bytes as usize,
            block_bytes: chip.page_bytes as usize * chip.pages_per_block as usize,
            is_nor: chip.nor.is_some(),
        };
        let image = image.inner();
        let read = py.detach(|| bug::caught(|| dumped(image, chip, (volume, compressor))))?;
        read.map(Dump).map_err(PyValueError::new_err)
    }
}

fn dumped(
    image: &image::Image,
    chip: Chip,
    (volume, compressor): (Option<&str>, Option<UbifsCompressor>),
) -> Result<run::Dump, String> {
    if image.ubi.is_some() {
        let (ubi, mut ubifs) = dumped_ubi(image, volume)?;
        ubifs.compressor = compressor.unwrap_or(ubifs.compressor);
        return Ok(run::Dump::Ubifs(Arc::new((ubi, ubifs))));
    }
    match image.parts.first().map(|part| &part.content) {
        Some(Content::Jffs2(_)) => Ok(run::Dump::Jffs2(Arc::new(dumped_jffs2(image, chip)?))),
        _ => Err("the simulator begins with JFFS2, or UBIFS on UBI".to_owned()),
    }
}
